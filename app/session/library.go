package session

import (
	"fmt"
	"slices"
)

// Reload reads the library again, in the background. When nothing valid is
// chosen and there is a model, the first is chosen.
func (c *Cluster) Reload() {
	c.mu.Lock()
	if c.closed || c.listing {
		c.relist = c.listing
		c.mu.Unlock()
		return
	}
	c.listing = true
	c.wg.Add(1)
	c.mu.Unlock()
	go func() { // Close waits for it
		defer c.wg.Done()
		models, err := c.library.List()
		c.mu.Lock()
		again := c.relist
		c.relist = false
		c.listing, c.listErr = false, err
		c.models = models
		if !slices.ContainsFunc(models, func(m Model) bool { return m.Path == c.chosen }) {
			c.chosen = ""
			if len(models) > 0 {
				c.chosen = models[0].Path
			}
		}
		c.mu.Unlock()
		c.tell()
		if again {
			c.Reload()
		}
	}()
}

// AddFile makes a model file part of the library and chooses it, in the
// background; State.Err says why when that fails.
func (c *Cluster) AddFile(path string) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	c.wg.Add(1)
	c.mu.Unlock()
	go func() { // Close waits for it
		defer c.wg.Done()
		listed, err := c.library.Add(path)
		c.mu.Lock()
		if err != nil {
			c.err = fmt.Errorf("%s: %w", path, err)
		} else {
			c.chosen, c.err = listed, nil
		}
		c.mu.Unlock()
		c.tell()
		if err == nil {
			c.Reload()
		}
	}()
}
