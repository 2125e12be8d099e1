package analysis

import (
	"errors"
	"slices"
	"strconv"

	"github.com/heddle-live/heddle/engine/builtin"
	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/value"
)

// call is a function or an operator of a clause, its arguments flat.
type call struct {
	name     string
	args     []parse.Term
	out      *slot
	literal  int // the condition it stands in; the head comes after all
	pos      Position
	function *builtin.Function // nil until the kinds of the arguments are known
	placed   bool
	tests    bool // compares its result with what is bound otherwise
	nullable bool
}

// flatten replaces an expression by a variable for its result. i is the condition in
// which it stands.
func (a *analyser) flatten(c *clause, t parse.Term, i int) parse.Term {
	if t.Kind != parse.Expression {
		return t
	}
	f := &call{name: t.Call.Name, literal: i, pos: t.Pos}
	f.args = make([]parse.Term, len(t.Call.Args))
	for j, arg := range t.Call.Args {
		f.args[j] = a.flatten(c, arg, i)
		a.mention(c, f.args[j], "computed with")
	}
	a.lookUpFunction(f)
	c.calls = append(c.calls, f)
	// No name in a text begins like this.
	name := "#" + strconv.Itoa(len(c.calls))
	s := c.add(name, t.Pos, false)
	s.name, s.call, s.calls = t.String(), f, []*call{f}
	f.out = s
	return parse.Term{Kind: parse.Variable, Name: name, Pos: t.Pos}
}

// lookUpFunction fails for a name that no function has.
func (a *analyser) lookUpFunction(f *call) {
	if builtin.Lookup(f.name) != nil {
		return
	}
	hint := ""
	_, err := builtin.Resolve(f.name, nil)
	unknown, _ := errors.AsType[*builtin.ResolveError](err)
	_, isRelation := a.program.names[f.name]
	switch _, isAggregate := aggregateKinds[f.name]; {
	case isAggregate:
		hint = "an aggregate is written " + f.name + "<X>, in the head of a rule"
	case isRelation:
		hint = "to join a relation, make it a condition of its own: " + f.name + "(...)"
	case unknown != nil && unknown.Hint != "":
		hint = unknown.Hint
	case unknown != nil && unknown.Nearest != "":
		hint = "did you mean " + unknown.Nearest + "?"
	}
	a.fail(f.pos, hint, "there is no function %s", f.name)
}

// place finds what binds each class and the order of the calls. A class that a call
// gives is computed, unless it is known or an atom before the call has it; atoms
// that have a computed class wait for it. Where atoms and calls wait for each other,
// the first atom goes on, and what it has is compared.
func (c *clause) place() {
	for _, s := range c.slots {
		if s.parent != nil {
			continue
		}
		s.bound = len(s.constants) > 0 || len(s.parameters) > 0
		for _, f := range s.calls {
			s.late = s.late || !s.bound && s.firstAtom >= f.literal
		}
	}
	done := make([]bool, len(c.literals))
	for c.placeAtom(done, false) || c.placeCall() || c.placeAtom(done, true) {
	}
}

// placeAtom places atoms that wait for nothing, or with force the first that waits,
// and reports whether there was one.
func (c *clause) placeAtom(done []bool, force bool) bool {
	any := false
	for i, l := range c.literals {
		if !l.positive() || done[i] || !force && c.waits(l.atom) {
			continue
		}
		done[i], any = true, true
		for _, t := range l.atom.Terms {
			if s := c.slotOf(t); s != nil {
				s.root().bound = true
			}
		}
		if force {
			break
		}
	}
	return any
}

// waits reports whether an atom has a class that is yet to be computed.
func (c *clause) waits(atom *parse.Atom) bool {
	for _, t := range atom.Terms {
		if s := c.slotOf(t); s != nil && s.root().late && !s.root().bound {
			return true
		}
	}
	return false
}

// placeCall places the first call that can be computed and whose result is known or
// waited for, and reports whether there was one.
func (c *clause) placeCall() bool {
	for _, f := range c.calls {
		root := f.out.root()
		if f.placed || !root.bound && !root.late || !c.hasArguments(f) {
			continue
		}
		f.placed, f.tests = true, root.bound
		if !root.bound {
			root.bound, root.computed = true, f
		}
		c.placed = append(c.placed, f)
		return true
	}
	return false
}

func (c *clause) hasArguments(f *call) bool {
	for _, t := range f.args {
		if s := c.slotOf(t); s != nil && !s.root().bound {
			return false
		}
	}
	return true
}

// inferCalls gives results the types of their functions, and reports whether that was
// news.
func (c *clause) inferCalls() bool {
	news := false
	for _, f := range c.calls {
		if f.function != nil {
			continue
		}
		if f.function, _ = c.function(f); f.function == nil {
			continue
		}
		f.out.kind, news = f.function.Result, true
		if root := f.out.root(); root.inferred == value.Invalid {
			root.inferred = f.out.kind
		}
	}
	return news
}

// function returns what a call means, and nothing while kinds are unknown.
func (c *clause) function(f *call) (*builtin.Function, error) {
	kinds := make([]value.Kind, len(f.args))
	literals := false
	for i, t := range f.args {
		kinds[i] = c.kindOf(t)
		if isNull(t) {
			kinds[i] = value.Null
		}
		if kinds[i] == value.Invalid {
			return nil, nil
		}
		literals = literals || t.Kind == parse.Constant && kinds[i] == value.Int
	}
	function, err := builtin.Resolve(f.name, kinds)
	if err == nil || !literals {
		return function, err
	}
	kinds = slices.Clone(kinds) // the error has the first ones
	for i, t := range f.args {
		if t.Kind == parse.Constant && kinds[i] == value.Int {
			kinds[i] = value.Timestamp
		}
	}
	if function, again := builtin.Resolve(f.name, kinds); again == nil {
		return function, nil
	}
	return nil, err
}

// checkCalls fails for calls that no function takes.
func (a *analyser) checkCalls(c *clause) {
	for _, f := range c.calls {
		if f.function != nil {
			continue
		}
		_, err := c.function(f)
		switch {
		case err == nil:
		case len(f.args) == 2 && len(f.name) == 1:
			a.fail(f.pos, operatorHint, "%s is %s%s, and %s is %s%s: %s does not take them",
				c.show(f.args[0]), kindText(c.kindOf(f.args[0])), c.slotOf(f.args[0]).because(),
				c.show(f.args[1]), kindText(c.kindOf(f.args[1])), c.slotOf(f.args[1]).because(),
				f.name)
		default:
			a.fail(f.pos, c.callHint(f), "%s", err)
		}
	}
}

const operatorHint = "operators take ints and floats; an int is added to or subtracted from a " +
	"timestamp, and timestamps from each other; strings are joined with concat"

// callHint names the arguments of a call and where their types come from.
func (c *clause) callHint(f *call) string {
	hint := ""
	for _, t := range f.args {
		s := c.slotOf(t)
		if s == nil {
			continue
		}
		if hint != "" {
			hint += ", "
		}
		hint += s.name + " is " + kindText(c.kindOf(t)) + s.because()
	}
	return hint
}

func isNull(t parse.Term) bool { return t.Kind == parse.Constant && t.Value.IsNull() }

// coerce returns the value in the type that is wanted: an int literal is a timestamp
// where one is expected.
func coerce(v value.Value, want value.Kind) value.Value {
	if want == value.Timestamp && v.Kind() == value.Int {
		return value.OfTimestamp(v.Int())
	}
	return v
}
