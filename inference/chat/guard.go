package chat

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/nikolalohinski/gonja/v2/exec"
)

// guardName is the context key of the guard; no template can spell it.
const guardName = "\x00guard"

// guard bounds one rendering. Its first objection is kept, since the library may wrap or swallow errors.
type guard struct {
	limit    time.Duration
	deadline time.Time
	depth    int
	maxValue int // bytes of one string, elements of one list
	refused  *Refused
	err      error
}

func newGuard(contentBytes int, limit time.Duration) *guard {
	return &guard{limit: limit, deadline: time.Now().Add(limit), maxValue: 4*contentBytes + 1<<20}
}

func guardOf(c *exec.Context) *guard {
	v, _ := c.Get(guardName)
	g, ok := v.(*guard)
	if !ok {
		return newGuard(0, defaultLimit)
	}
	return g
}

func (g *guard) fail(format string, args ...any) error {
	if g.err == nil {
		g.err = fmt.Errorf(format, args...)
	}
	return g.err
}

// tick is called by everything that can repeat.
func (g *guard) tick() error {
	if g.err != nil {
		return g.err
	}
	if time.Now().After(g.deadline) {
		return g.fail("takes longer than %v", g.limit)
	}
	return nil
}

// enter is called by everything that can call itself; leave follows.
func (g *guard) enter() error {
	if g.depth >= maxDepth {
		return g.fail("macros call each other more than %d deep", maxDepth)
	}
	g.depth++
	return g.tick()
}

func (g *guard) leave() { g.depth-- }

// room reports an error when a value is larger than any real template makes.
func (g *guard) room(n int) error {
	if n > g.maxValue || n < 0 {
		return g.fail("makes a value of more than %d bytes", g.maxValue)
	}
	return nil
}

// check does the same for a value that exists already.
func (g *guard) check(v *exec.Value) error {
	switch v.Val.Kind() {
	case reflect.String, reflect.Slice:
		return g.room(v.Val.Len())
	}
	return nil
}

// output collects what is rendered.
type output struct {
	guard *guard
	b     strings.Builder
}

var errOutput = errors.New("output too long")

func (o *output) Write(p []byte) (int, error) {
	if len(p) > maxOutput-o.b.Len() {
		o.guard.fail("renders more than %d MiB", maxOutput>>20)
		return 0, errOutput
	}
	return o.b.Write(p)
}
