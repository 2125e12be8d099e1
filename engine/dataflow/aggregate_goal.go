package dataflow

import (
	"slices"

	"github.com/heddle-live/heddle/engine/analysis"
)

// goalAggregate adds the rules of a goal that asks for the rows of one aggregating
// clause as they are: these go into the goal's result without a predicate between,
// which saves half of what a change costs. It reports whether it did. c is the
// goal's clause.
func (t *transformer) goalAggregate(c clause, q *analysis.Query) (bool, error) {
	b := &q.Body
	if len(b.Atoms) != 1 || len(b.Negations)+len(b.Comparisons)+len(b.Computations) > 0 ||
		q.Limit > 0 || t.prepared.plain {
		return false, nil
	}
	goal := b.Atoms[0]
	clauses := t.prepared.clauses[goal.Relation]
	if len(clauses) != 1 || t.levels[goal.Relation] == whole {
		return false, nil
	}
	r := &t.program.Rules[clauses[0]]
	if r.Aggregates == nil || len(r.Body.Computations) > 0 {
		return false, nil
	}
	c.name = Clause{Rule: clauses[0], Goal: -1}
	return t.substituted(c, r, goal.Terms)
}

// substituted adds the rules of a goal that asks for an atom with the given terms of
// what r derives, if that can be done by replacing the variables of r.
func (t *transformer) substituted(c clause, r *analysis.Rule, goal []analysis.Term) (bool, error) {
	variables := slices.Concat(c.body.Variables, r.Body.Variables)
	to := make([]analysis.Term, len(r.Body.Variables))
	for v := range to {
		to[v].Var = len(c.body.Variables) + v
	}
	terms, err := t.operands(goal)
	if err != nil {
		return false, err
	}
	g := aggregating{clause: c}
	g.from = slices.Repeat([]int{unbound}, len(c.head.terms))
	place := func(o operand, from int) bool {
		isIn := false
		for column, of := range c.head.terms {
			if of == o {
				g.from[column], isIn = from, true
			}
		}
		return isIn
	}
	taken := make([]bool, len(r.Body.Variables))
	for column, a := range r.Aggregates {
		o := terms[column]
		if a.Kind != analysis.NoAggregate {
			if o.register < c.parameters || count(terms, o) > 1 {
				return false, nil // what is aggregated has to be compared
			}
			if !place(o, ^len(g.columns)) && severalRows(r) {
				return false, nil
			}
			g.columns = append(g.columns, a)
			continue
		}
		isIn := place(o, len(g.group))
		v := r.Head.Terms[column].Var
		if v < 0 || taken[v] || !isIn && o.register >= 0 && severalRows(r) {
			return false, nil
		}
		taken[v], to[v] = true, goal[column]
		g.group = append(g.group, o)
	}
	if slices.Contains(g.from, unbound) {
		return false, nil
	}
	g.body = &analysis.Body{Variables: variables}
	insertBody(g.body, &r.Body, to)
	for i := range g.columns {
		g.columns[i].Arg = substitute(g.columns[i].Arg, to)
		arg, err := t.operand(g.columns[i].Arg)
		if err != nil {
			return false, err
		}
		g.args = append(g.args, arg)
		for column, from := range g.from {
			if from == ^i {
				g.head.terms = slices.Clone(g.head.terms)
				g.head.terms[column] = arg
			}
		}
	}
	if g.columns[0].Kind < analysis.TopK {
		return true, t.grouped(g)
	}
	return true, t.chosen(g)
}

func count(terms []operand, o operand) int {
	n := 0
	for _, other := range terms {
		if other == o {
			n++
		}
	}
	return n
}

// severalRows reports whether a clause may derive several rows for one group.
func severalRows(r *analysis.Rule) bool {
	return slices.ContainsFunc(r.Aggregates, func(a analysis.Aggregate) bool {
		return a.Kind >= analysis.TopK
	})
}

// insertBody adds the literals of a body without computations, its variables
// replaced.
func insertBody(b, from *analysis.Body, to []analysis.Term) {
	for _, a := range from.Atoms {
		b.Atoms = append(b.Atoms, substituteAll(a, to))
	}
	for _, a := range from.Negations {
		b.Negations = append(b.Negations, substituteAll(a, to))
	}
	for _, c := range from.Comparisons {
		b.Comparisons = append(b.Comparisons, analysis.Comparison{
			Op: c.Op, Left: substitute(c.Left, to), Right: substitute(c.Right, to),
		})
	}
}
