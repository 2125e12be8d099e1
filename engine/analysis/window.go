package analysis

import (
	"fmt"

	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/value"
)

// takeLimit makes the window of a query from its last condition if that is
// `limit(50, 10)`, unless there is a relation limit.
func (a *analyser) takeLimit(c *clause) {
	last := c.conditions[len(c.conditions)-1]
	if len(c.conditions) == 1 || last.Atom == nil || last.Negated || c.query.Window.Limit > 0 ||
		last.Atom.Relation.Text != "limit" || len(last.Atom.Terms) > 2 {
		return
	}
	if _, ok := a.program.names["limit"]; ok {
		return
	}
	numbers := [2]int64{}
	for i, t := range last.Atom.Terms {
		if t.Kind != parse.Constant || t.Value.Kind() != value.Int {
			return
		}
		numbers[i] = t.Value.Int()
		if n := numbers[i]; n < int64(1-i) || n > parse.WindowMax {
			a.fail(t.Pos, "", "%s is a number from %d to %d", [2]string{"limit", "offset"}[i], 1-i,
				parse.WindowMax)
		}
	}
	query := *c.query
	query.Window = parse.Window{
		Limit: int(numbers[0]), Offset: int(numbers[1]), Pos: last.Atom.Relation.Pos,
	}
	c.query = &query
	c.conditions = c.conditions[:len(c.conditions)-1]
}

// window makes the IR of a query's order and limit.
func (a *analyser) window(c *clause, q *Query) {
	for _, o := range c.query.Order {
		column := -1
		for i := range q.Columns {
			if q.Columns[i].Name == o.Term.Name && column < 0 {
				column = i
			}
		}
		q.Order = append(q.Order, Order{Column: column, Descending: o.Descending})
	}
	q.Limit, q.Offset = c.query.Window.Limit, c.query.Window.Offset
}

// checkOrder fails for an order by what is no column.
func (a *analyser) checkOrder(c *clause) {
	for i, o := range c.query.Order {
		if s := c.slotOf(o.Term); s == nil {
			a.fail(o.Term.Pos, c.unboundHint(o.Term.Name),
				"the query has no variable %s", o.Term.Name)
		}
		for _, other := range c.query.Order[:i] {
			if other.Term.Name == o.Term.Name {
				a.fail(o.Term.Pos, "", "the rows are ordered by %s already", o.Term.Name)
			}
		}
	}
}

// canonicalText returns the query with its parameters called $1, $2 and its
// variables V1, V2 in order.
func canonicalText(c *clause) string {
	all := c.renamer()
	q := parse.QueryTree{Window: c.query.Window}
	for i, l := range c.conditions {
		l = renamed(l, all)
		if i == 0 {
			q.Goal = *l.Atom
		} else {
			q.Body = append(q.Body, l)
		}
	}
	for _, o := range c.query.Order {
		q.Order = append(q.Order,
			parse.Order{Term: all([]parse.Term{o.Term})[0], Descending: o.Descending})
	}
	return q.String()
}

// renamer returns what renames the terms of the clause as written.
func (c *clause) renamer() func(terms []parse.Term) []parse.Term {
	names := map[*slot]string{}
	variables, parameters := 0, 0
	for _, s := range c.slots {
		switch {
		case s.parameter:
			parameters++
			names[s] = fmt.Sprint(parameters)
		case s.call == nil:
			variables++
			names[s] = fmt.Sprintf("V%d", variables)
		}
	}
	var all func(terms []parse.Term) []parse.Term
	all = func(terms []parse.Term) []parse.Term {
		out := make([]parse.Term, len(terms))
		for i, t := range terms {
			if s := c.slotOf(t); s != nil {
				t.Name = names[s]
			}
			if t.Kind == parse.Expression {
				t.Call = &parse.Call{Name: t.Call.Name, Args: all(t.Call.Args)}
			}
			out[i] = t
		}
		return out
	}
	return all
}

func renamed(l parse.Literal, all func([]parse.Term) []parse.Term) parse.Literal {
	if l.Atom != nil {
		l.Atom = &parse.Atom{Relation: l.Atom.Relation, Terms: all(l.Atom.Terms)}
		return l
	}
	sides := all([]parse.Term{l.Comparison.Left, l.Comparison.Right})
	l.Comparison.Left, l.Comparison.Right = sides[0], sides[1]
	return l
}
