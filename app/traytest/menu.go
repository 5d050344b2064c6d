package traytest

import (
	"context"
	"errors"
	"fmt"

	"github.com/godbus/dbus/v5"
)

// MenuEntry is a line of an app's menu.
type MenuEntry struct {
	ID        int32
	Label     string // empty for a separator
	Separator bool
	Enabled   bool
	Checkable bool
	Checked   bool
}

// layout is com.canonical.dbusmenu's (ia{sv}av).
type layout struct {
	ID         int32
	Properties map[string]dbus.Variant
	Children   []dbus.Variant
}

func (i *Item) menu(ctx context.Context) (dbus.BusObject, error) {
	var v dbus.Variant
	err := i.conn.Object(i.owner, i.path).
		CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, itemIface, "Menu").Store(&v)
	if err != nil {
		return nil, fmt.Errorf("asking for the menu: %w", err)
	}
	path, ok := v.Value().(dbus.ObjectPath)
	if !ok {
		return nil, fmt.Errorf("the menu's path is a %T", v.Value())
	}
	return i.conn.Object(i.owner, path), nil
}

// Menu reads the first level of the menu as it is now.
func (i *Item) Menu(ctx context.Context) ([]MenuEntry, error) {
	menu, err := i.menu(ctx)
	if err != nil {
		return nil, err
	}
	var revision uint32
	var root layout
	if err := menu.CallWithContext(ctx, menuIface+".GetLayout", 0, int32(0), int32(-1), []string{}).Store(&revision, &root); err != nil {
		return nil, fmt.Errorf("reading the menu: %w", err)
	}
	if len(root.Children) > maxEntries {
		return nil, errors.New("reading the menu: too long")
	}
	var list []MenuEntry
	for _, child := range root.Children {
		var l layout
		if err := child.Store(&l); err != nil {
			return nil, fmt.Errorf("reading a menu entry: %w", err)
		}
		list = append(list, entry(l))
	}
	return list, nil
}

// entry applies the defaults of the protocol: enabled, no mark.
func entry(l layout) MenuEntry {
	e := MenuEntry{ID: l.ID, Enabled: true}
	e.Label, _ = l.Properties["label"].Value().(string)
	if kind, _ := l.Properties["type"].Value().(string); kind == "separator" {
		e.Separator = true
	}
	if enabled, ok := l.Properties["enabled"].Value().(bool); ok {
		e.Enabled = enabled
	}
	kind, _ := l.Properties["toggle-type"].Value().(string)
	e.Checkable = kind != ""
	switch state := l.Properties["toggle-state"].Value().(type) {
	case int32:
		e.Checked = e.Checkable && state == 1
	case int64: // some apps send a wider number
		e.Checked = e.Checkable && state == 1
	}
	return e
}

// Click chooses the enabled entry with this label.
func (i *Item) Click(ctx context.Context, label string) error {
	entries, err := i.Menu(ctx)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Label != label {
			continue
		}
		if !e.Enabled {
			return fmt.Errorf("the menu entry %q is disabled", label)
		}
		menu, err := i.menu(ctx)
		if err != nil {
			return err
		}
		call := menu.CallWithContext(ctx, menuIface+".Event", 0, e.ID, "clicked", dbus.MakeVariant(int32(0)), uint32(0))
		if call.Err != nil {
			return fmt.Errorf("clicking %q: %w", label, call.Err)
		}
		return nil
	}
	return fmt.Errorf("there is no menu entry %q", label)
}
