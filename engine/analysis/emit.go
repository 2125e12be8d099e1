package analysis

import (
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
		n = e.variable(s.plainName(), s.root().inferred, s.root().nullable)
		e.numbers[s] = n
	}
	return n
}

func (e *emitter) variable(name string, kind value.Kind, nullable bool) int {
	e.variables = append(e.variables, Variable{Name: name, Type: kind, Nullable: nullable})
	return len(e.variables) - 1
}

// plainName returns the name without the $ of a parameter, and none for the inside
// of an expression.
func (s *slot) plainName() string {
	switch {
	case s.call != nil:
		return ""
	case s.parameter:
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

// typed is term for a place where a type is expected.
func (e *emitter) typed(t parse.Term, want value.Kind) Term {
	if t.Kind == parse.Constant {
		return ConstTerm(coerce(t.Value, want))
	}
	return e.term(t)
}

func (e *emitter) representative(s *slot) Term {
	root := s.root()
	switch {
	case len(root.parameters) > 0:
		return Term{Var: e.number(root.parameters[0])}
	case len(root.constants) > 0:
		return ConstTerm(coerce(root.constants[0].Value, root.inferred))
	}
	return Term{Var: e.number(root)}
}

func (e *emitter) atom(id RelationID, tree *parse.Atom) Atom {
	a := Atom{Relation: id, Terms: make([]Term, len(tree.Terms))}
	for i, t := range tree.Terms {
		column := e.program.Relations[id].Columns[i]
		switch t.Kind {
		case parse.Wildcard:
			a.Terms[i] = Term{Var: e.variable("", column.Type, column.Nullable)}
		case parse.Aggregated:
			a.Terms[i] = e.term(t.Call.Args[argument(t.Call)])
		default:
			a.Terms[i] = e.typed(t, column.Type)
		}
	}
	return a
}

// body returns the literals. Its Variables are those so far.
func (e *emitter) body() Body {
	var b Body
	for _, l := range e.c.literals {
		switch {
		case l.negated:
			b.Negations = append(b.Negations, e.atom(l.relation, l.atom))
		case l.atom != nil:
			b.Atoms = append(b.Atoms, e.atom(l.relation, l.atom))
		}
	}
	for _, cmp := range e.c.kept {
		b.add(Comparison{
			Op:    Operator(cmp.Op),
			Left:  e.typed(cmp.Left, e.c.kindOf(cmp.Right)),
			Right: e.typed(cmp.Right, e.c.kindOf(cmp.Left)),
		})
	}
	for _, f := range e.c.placed {
		e.compute(&b, f)
	}
	for _, s := range e.c.slots {
		if s.parent == nil {
			e.restrict(&b, s)
		}
	}
	b.Variables = e.variables
	return b
}

// compute adds a call, and the comparison of its result with what is bound already.
func (e *emitter) compute(b *Body, f *call) {
	c := Computation{Function: f.function, Args: make([]Term, len(f.args)), Pos: f.pos}
	for i, t := range f.args {
		c.Args[i] = e.typed(t, f.function.Params[min(i, len(f.function.Params)-1)])
	}
	if f.tests {
		c.Out = e.variable("", f.function.Result, f.nullable)
		b.add(Comparison{Op: Eq, Left: Term{Var: c.Out}, Right: e.representative(f.out)})
	} else {
		c.Out = e.number(f.out.root())
	}
	b.Computations = append(b.Computations, c)
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
		b.add(Comparison{Op: Eq, Left: chosen, Right: ConstTerm(coerce(t.Value, root.inferred))})
	}
}

// add appends a comparison unless it always holds.
func (b *Body) add(c Comparison) {
	if c.Left.IsConst() && c.Right.IsConst() &&
		c.Op.Holds(value.Compare(c.Left.Const, c.Right.Const)) {
		return
	}
	b.Comparisons = append(b.Comparisons, c)
}

// output adds a column of a class.
func (q *Query) output(t Term, name string, root *slot) {
	q.Output = append(q.Output, t)
	q.Columns = append(q.Columns,
		Column{Name: name, Type: root.inferred, Nullable: root.nullable})
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
	goal := c.literals[0].atom
	columns := a.program.Relations[c.literals[0].relation].Columns
	inGoal := map[*slot]bool{}
	for i, t := range goal.Terms {
		name := columns[i].Name
		switch t.Kind {
		case parse.Wildcard:
			continue
		case parse.Variable:
			if s := c.slotOf(t); s.call == nil {
				name = t.Name
				inGoal[s] = true
			}
		}
		term := e.typed(t, columns[i].Type)
		nullable := columns[i].Nullable && c.nullable(t)
		q.Output = append(q.Output, term)
		q.Columns = append(q.Columns,
			Column{Name: name, Type: columns[i].Type, Nullable: nullable})
	}
	for _, s := range c.slots {
		if !s.parameter && s.call == nil && !inGoal[s] {
			q.output(e.representative(s), s.name, s.root())
		}
	}
	q.Body.Variables = e.variables
	a.window(c, &q)
	columnNames(q.Columns)
	return q
}
