package analysis

import (
	"github.com/heddle-live/heddle/engine/builtin"
	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/value"
)

// AnalyseQuery checks an ad-hoc query against a program. Its parameters get the
// types of what they are compared with or stand for, and are numbered in order
// of first appearance. The error is of type parse.Errors; the query is nil
// then. Neither argument is changed, so that p may serve many at once.
func AnalyseQuery(p *Program, q *parse.QueryTree) (*Query, error) {
	a := newAnalyser(p.indexed(), q.Source)
	c := newQueryClause(q, nil)
	a.resolveClause(c)
	if err := a.err(); err != nil {
		return nil, err
	}
	a.checkOutput(c)
	a.inferSlots(c)
	c.inferParameters()
	a.checkTyped(c)
	a.inferClauseNulls(c)
	a.checkClause(c)
	if err := a.err(); err != nil {
		return nil, err
	}
	query := a.emitQuery(c)
	return &query, nil
}

// indexed returns a program that has its index of names.
func (p *Program) indexed() *Program {
	if p.names != nil {
		return p
	}
	indexed := *p
	indexed.names = make(map[string]RelationID, len(p.Relations))
	for i := range p.Relations {
		indexed.names[p.Relations[i].Name] = RelationID(i)
	}
	return &indexed
}

// inferParameters gives parameters that stand in no relation the types of what
// they are compared with.
func (c *clause) inferParameters() {
	for news := true; news; {
		news = false
		for _, cmp := range c.kept {
			left, right := c.slotOf(cmp.Left), c.slotOf(cmp.Right)
			news = left.learn(c.kindOf(cmp.Right)) || right.learn(c.kindOf(cmp.Left)) || news
		}
		news = c.inferCalls() || news
		for i := 0; i < len(c.calls) && !news; i++ {
			news = c.guessArguments(c.calls[i])
		}
	}
}

// learn gives the class of s a type if it has none, and reports whether it did.
func (s *slot) learn(kind value.Kind) bool {
	if s == nil || kind == value.Invalid || s.root().inferred != value.Invalid {
		return false
	}
	s.root().inferred = kind
	return true
}

// guessArguments gives the unknown arguments of a call the types of the only function
// that may be meant, or of the only one whose types are all the same.
func (c *clause) guessArguments(f *call) bool {
	if f.function != nil {
		return false
	}
	var fits, uniform []*builtin.Function
	spec := builtin.Lookup(f.name)
	for i := range spec.Functions {
		if function := &spec.Functions[i]; c.mayMean(f, function) {
			fits = append(fits, function)
			same := function.Result
			for _, kind := range function.Params {
				if kind != same {
					same = value.Invalid
				}
			}
			if same != value.Invalid {
				uniform = append(uniform, function)
			}
		}
	}
	if len(fits) > 1 {
		fits = uniform
	}
	if len(fits) != 1 {
		return false
	}
	news := false
	for i, t := range f.args {
		news = c.slotOf(t).learn(fits[0].Params[min(i, len(fits[0].Params)-1)]) || news
	}
	return news
}

// mayMean reports whether a call fits a function as far as its types are known.
func (c *clause) mayMean(f *call, function *builtin.Function) bool {
	if len(f.args) < len(function.Params) ||
		len(f.args) > len(function.Params) && !function.Variadic {
		return false
	}
	for i, t := range f.args {
		kind := c.kindOf(t)
		if kind != value.Invalid && kind != function.Params[min(i, len(function.Params)-1)] {
			return false
		}
	}
	out := f.out.root().inferred
	return out == value.Invalid || out == function.Result
}

// checkOutput fails for a query without columns.
func (a *analyser) checkOutput(c *clause) {
	a.checkOrder(c)
	goal := c.conditions[0].Atom
	for _, s := range c.slots {
		if !s.parameter && s.call == nil {
			return
		}
	}
	for _, t := range goal.Terms {
		if t.Kind != parse.Wildcard {
			return
		}
	}
	a.fail(goal.Relation.Pos, "name what you want to see: a variable instead of _",
		"the query has no columns")
}
