package analysis

import (
	"fmt"

	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/value"
)

// emitter makes the IR of one clause that has no faults.
type emitter struct {
	c         *clause
	program   *Program
	variables []Variable
	numbers   map[*slot]int // of roots and of parameters
}

// newEmitter returns an emitter whose first variables are the parameters.
func newEmitter(c *clause, p *Program) *emitter {
	e := &emitter{c: c, program: p, numbers: map[*slot]int{}}
	for _, s := range c.slots {
		if s.parameter {
			e.number(s)
		}
	}
	return e
}

func (e *emitter) number(s *slot) int {
	n, ok := e.numbers[s]
	if !ok {
		n = len(e.variables)
		e.numbers[s] = n
		e.variables = append(e.variables, Variable{Name: s.plainName(), Type: s.root().inferred})
	}
	return n
}

// plainName returns the name without the $ of a parameter.
func (s *slot) plainName() string {
	if s.parameter {
		return s.name[1:]
	}
	return s.name
}

// term returns what stands for t once equal variables are one: a parameter of
// the class if it has one, else its constant, else its variable.
func (e *emitter) term(t parse.Term) Term {
	switch t.Kind {
	case parse.Constant:
		return ConstTerm(t.Value)
	case parse.Wildcard:
		panic("analysis: a wildcard has a term only in its column")
	}
	return e.representative(e.c.slotOf(t))
}

func (e *emitter) representative(s *slot) Term {
	root := s.root()
	switch {
	case len(root.parameters) > 0:
		return Term{Var: e.number(root.parameters[0])}
	case len(root.constants) > 0:
		return ConstTerm(root.constants[0].Value)
	}
	return Term{Var: e.number(root)}
}

func (e *emitter) atom(id RelationID, tree *parse.Atom) Atom {
	a := Atom{Relation: id, Terms: make([]Term, len(tree.Terms))}
	for i, t := range tree.Terms {
		if t.Kind != parse.Wildcard {
			a.Terms[i] = e.term(t)
			continue
		}
		a.Terms[i] = Term{Var: len(e.variables)}
		kind := e.program.Relations[id].Columns[i].Type
		e.variables = append(e.variables, Variable{Type: kind})
	}
	return a
}

// body returns atoms and comparisons. Its Variables are those so far.
func (e *emitter) body() Body {
	var b Body
	for _, l := range e.c.conditions {
		if l.Atom != nil {
			b.Atoms = append(b.Atoms, e.atom(e.c.atoms[len(b.Atoms)], l.Atom))
		}
	}
	for _, cmp := range e.c.kept {
		b.add(Comparison{Op: Operator(cmp.Op), Left: e.term(cmp.Left), Right: e.term(cmp.Right)})
	}
	for _, s := range e.c.slots {
		if s.parent == nil {
			e.restrict(&b, s)
		}
	}
	b.Variables = e.variables
	return b
}

// restrict compares what is equal in a class but has no common term.
func (e *emitter) restrict(b *Body, root *slot) {
	chosen := e.representative(root)
	for i, p := range root.parameters {
		if i > 0 {
			b.add(Comparison{Op: Eq, Left: chosen, Right: Term{Var: e.number(p)}})
		}
	}
	for _, t := range root.constants {
		b.add(Comparison{Op: Eq, Left: chosen, Right: ConstTerm(t.Value)})
	}
}

// add appends a comparison unless it always holds.
func (b *Body) add(c Comparison) {
	if c.Left.IsConst() && c.Right.IsConst() &&
		holds(c.Op, value.Compare(c.Left.Const, c.Right.Const)) {
		return
	}
	b.Comparisons = append(b.Comparisons, c)
}

func holds(op Operator, order int) bool {
	switch op {
	case Eq:
		return order == 0
	case Ne:
		return order != 0
	case Lt:
		return order < 0
	case Le:
		return order <= 0
	case Gt:
		return order > 0
	}
	return order >= 0
}

// emitQuery makes the IR of a query.
func (a *analyser) emitQuery(c *clause) Query {
	e := newEmitter(c, a.program)
	q := Query{Text: canonicalText(c)}
	for _, s := range c.slots {
		if s.parameter {
			q.Parameters = append(q.Parameters,
				Column{Name: s.plainName(), Type: s.root().inferred})
		}
	}
	q.Body = e.body()
	output := func(t Term, name string, kind value.Kind) {
		q.Output = append(q.Output, t)
		q.Columns = append(q.Columns, Column{Name: name, Type: kind})
	}
	goal := c.conditions[0].Atom
	columns := a.program.Relations[c.atoms[0]].Columns
	inGoal := map[*slot]bool{}
	for i, t := range goal.Terms {
		name := columns[i].Name
		switch t.Kind {
		case parse.Wildcard:
			continue
		case parse.Variable:
			name = t.Name
			inGoal[c.slotOf(t)] = true
		}
		output(e.term(t), name, columns[i].Type)
	}
	for _, s := range c.slots {
		if !s.parameter && !inGoal[s] {
			output(e.representative(s), s.name, s.root().inferred)
		}
	}
	q.Body.Variables = e.variables
	columnNames(q.Columns)
	return q
}

// canonicalText returns the query with its parameters called $1, $2 and its
// variables V1, V2 in order.
func canonicalText(c *clause) string {
	names := map[*slot]string{}
	variables, parameters := 0, 0
	for _, s := range c.slots {
		if s.parameter {
			parameters++
			names[s] = fmt.Sprint(parameters)
		} else {
			variables++
			names[s] = fmt.Sprintf("V%d", variables)
		}
	}
	rename := func(t parse.Term) parse.Term {
		if s := c.slotOf(t); s != nil {
			t.Name = names[s]
		}
		return t
	}
	var q parse.QueryTree
	for i, l := range c.conditions {
		if l.Atom == nil {
			l.Comparison.Left = rename(l.Comparison.Left)
			l.Comparison.Right = rename(l.Comparison.Right)
		} else {
			atom := *l.Atom
			atom.Terms = make([]parse.Term, len(l.Atom.Terms))
			for j, t := range l.Atom.Terms {
				atom.Terms[j] = rename(t)
			}
			l.Atom = &atom
		}
		if i == 0 {
			q.Goal = *l.Atom
		} else {
			q.Body = append(q.Body, l)
		}
	}
	return q.String()
}
