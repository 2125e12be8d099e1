package analysis

import (
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
	for _, s := range c.slots {
		if s.root().inferred == value.Invalid {
			a.fail(s.pos, "let it stand in a relation, or compare it with something that does",
				"the type of %s cannot be told", s.name)
		}
	}
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

// checkOutput fails for a query without columns.
func (a *analyser) checkOutput(c *clause) {
	goal := c.conditions[0].Atom
	for _, s := range c.slots {
		if !s.parameter {
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
