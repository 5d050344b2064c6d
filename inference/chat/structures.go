package chat

import (
	"strings"

	"github.com/nikolalohinski/gonja/v2/builtins"
	controlstructures "github.com/nikolalohinski/gonja/v2/builtins/control_structures"
	"github.com/nikolalohinski/gonja/v2/exec"
	"github.com/nikolalohinski/gonja/v2/nodes"
	"github.com/nikolalohinski/gonja/v2/parser"
	"github.com/nikolalohinski/gonja/v2/tokens"
)

// structures returns the statements that templates may use: gonja's, less those that reach other templates, with the
// guard around those that can repeat or grow.
func structures() *exec.ControlStructureSet {
	set := map[string]parser.ControlStructureParser{"set": parseSet}
	for _, name := range []string{"raw", "do", "break", "continue", "with", "filter"} {
		if p, ok := builtins.ControlStructures.Get(name); ok {
			set[name] = p
		}
	}
	for _, name := range []string{"if", "for", "macro", "call"} {
		if p, ok := builtins.ControlStructures.Get(name); ok {
			set[name] = guarded(p)
		}
	}
	return exec.NewControlStructureSet(set)
}

// guarded wraps what a parser returns.
func guarded(p parser.ControlStructureParser) parser.ControlStructureParser {
	return func(outer, args *parser.Parser) (nodes.ControlStructure, error) {
		node, err := p(outer, args)
		if err != nil {
			return nil, err
		}
		inner, ok := node.(exec.ControlStructure)
		if !ok {
			return node, nil
		}
		return guardedStructure{inner}, nil
	}
}

type guardedStructure struct{ exec.ControlStructure }

func (s guardedStructure) Execute(r *exec.Renderer, tag *nodes.ControlStructureBlock) error {
	g := guardOf(r.Environment.Context)
	if err := g.tick(); err != nil {
		return err
	}
	if err := s.ControlStructure.Execute(r, tag); err != nil {
		return err
	}
	if macro, ok := s.ControlStructure.(*controlstructures.MacroControlStructure); ok {
		guardMacro(r.Environment.Context, macro.Name, g)
	}
	return nil
}

// guardMacro puts a macro that counts its depth in place of the one just defined: a macro that calls itself without
// end would otherwise exhaust the stack, which nothing can recover from.
func guardMacro(c *exec.Context, name string, g *guard) {
	v, _ := c.Get(name)
	macro, ok := v.(exec.Macro)
	if !ok {
		return
	}
	c.Set(name, exec.Macro(func(va *exec.VarArgs) *exec.Value {
		if err := g.enter(); err != nil {
			return exec.AsValue(err)
		}
		defer g.leave()
		for _, a := range va.Args {
			if err := g.check(a); err != nil {
				return exec.AsValue(err)
			}
		}
		out := macro(va)
		if err := g.check(out); err != nil {
			return exec.AsValue(err)
		}
		return out
	}))
}

// setStatement is {% set target = value %} or {% set target %}…{% endset %}. It is our own so that the size of what is
// kept can be looked at.
type setStatement struct {
	location  *tokens.Token
	target    nodes.Expression
	value     nodes.Expression
	condition nodes.Expression // value if condition else otherwise
	otherwise nodes.Expression
	body      *nodes.Wrapper
}

func (s *setStatement) Position() *tokens.Token { return s.location }
func (s *setStatement) String() string          { return "set" }

func parseSet(p, args *parser.Parser) (nodes.ControlStructure, error) {
	s := &setStatement{location: p.Current()}
	var err error
	if s.target, err = args.ParseVariableOrLiteral(); err != nil {
		return nil, err
	}
	if args.Match(tokens.Assign) == nil {
		if !args.End() {
			return nil, args.Error("expected '=' in set", args.Current())
		}
		s.body, _, err = p.WrapUntil("endset")
		return s, err
	}
	if s.value, err = args.ParseExpression(); err != nil {
		return nil, err
	}
	if s.condition, s.otherwise, err = args.ParseCondition(); err != nil {
		return nil, err
	}
	if !args.End() {
		return nil, args.Error("malformed set", args.Current())
	}
	return s, nil
}

func (s *setStatement) Execute(r *exec.Renderer, _ *nodes.ControlStructureBlock) error {
	g := guardOf(r.Environment.Context)
	if err := g.tick(); err != nil {
		return err
	}
	value, err := s.eval(r)
	if err != nil {
		return err
	}
	if err := g.check(value); err != nil {
		return err
	}
	switch n := s.target.(type) {
	case *nodes.Name:
		r.Environment.Context.Set(n.Name.Val, value.Interface())
		return nil
	case *nodes.GetAttribute:
		owner := r.Eval(n.Node)
		if owner.IsError() {
			return owner
		}
		return owner.Set(exec.AsValue(n.Attribute), value.Interface())
	case *nodes.GetItem:
		owner, key := r.Eval(n.Node), r.Eval(n.Arg)
		if owner.IsError() {
			return owner
		}
		if key.IsError() {
			return key
		}
		return owner.Set(key, value.Interface())
	}
	return g.fail("cannot set %s", s.target)
}

func (s *setStatement) eval(r *exec.Renderer) (*exec.Value, error) {
	if s.body != nil {
		var b strings.Builder
		sub := r.Inherit()
		sub.Output = &b
		if err := sub.ExecuteWrapper(s.body); err != nil {
			return nil, err
		}
		return exec.AsSafeValue(b.String()), nil
	}
	expr := s.value
	if s.condition != nil {
		c := r.Eval(s.condition)
		if c.IsError() {
			return nil, c
		}
		if !c.IsTrue() {
			expr = s.otherwise
		}
	}
	if expr == nil {
		return exec.AsValue(nil), nil
	}
	v := r.Eval(expr)
	if v.IsError() {
		return nil, v
	}
	return asList(v), nil
}
