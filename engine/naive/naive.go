// Package naive is the slow twin of the rule engine: it derives everything from
// scratch, over maps, by the definition of the language. Tests compare the
// incremental engine with it. It shares no code with what it checks, and nothing
// but tests calls it.
package naive

import (
	"slices"
	"strings"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
)

// Set is a set of rows by their spelling.
type Set map[string][]value.Value

// Add puts a row into the set and reports whether it is new.
func (s Set) Add(row []value.Value) bool {
	k := spelling(row)
	if _, ok := s[k]; ok {
		return false
	}
	s[k] = slices.Clone(row)
	return true
}

// Remove takes a row out of the set.
func (s Set) Remove(row []value.Value) { delete(s, spelling(row)) }

// Has reports whether the row is in the set.
func (s Set) Has(row []value.Value) bool {
	_, ok := s[spelling(row)]
	return ok
}

func spelling(row []value.Value) string {
	var b strings.Builder
	for _, v := range row {
		b.WriteString(v.Kind().String())
		b.WriteByte(' ')
		b.WriteString(v.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// Facts maps the names of base relations to their rows.
type Facts map[string]Set

// Database holds the rows of every relation of a program, by RelationID.
type Database []Set

// Derive returns all relations of a program over the given facts: the least set
// closed under the rules.
func Derive(p *analysis.Program, facts Facts) Database {
	db := make(Database, len(p.Relations))
	for i, r := range p.Relations {
		db[i] = Set{}
		if !r.Derived {
			for _, row := range facts[r.Name] {
				db[i].Add(row)
			}
		}
	}
	for changed := true; changed; {
		changed = false
		for i := range p.Rules {
			r := &p.Rules[i]
			var found [][]value.Value
			solve(db, &r.Body, nil, func(binding []value.Value) {
				found = append(found, instantiate(r.Head.Terms, binding))
			})
			for _, row := range found {
				if db[r.Head.Relation].Add(row) {
					changed = true
				}
			}
		}
	}
	return db
}

// Answer returns the rows of a query, sorted, without duplicates.
func Answer(db Database, q *analysis.Query, parameters []value.Value) [][]value.Value {
	set := Set{}
	solve(db, &q.Body, parameters, func(binding []value.Value) {
		set.Add(instantiate(q.Output, binding))
	})
	rows := make([][]value.Value, 0, len(set))
	for _, row := range set {
		rows = append(rows, row)
	}
	slices.SortFunc(rows, CompareRows)
	return rows
}

// CompareRows orders rows of equal length by value.Compare, column by column.
func CompareRows(a, b []value.Value) int { return slices.CompareFunc(a, b, value.Compare) }

func instantiate(terms []analysis.Term, binding []value.Value) []value.Value {
	row := make([]value.Value, len(terms))
	for i, t := range terms {
		row[i] = evaluate(t, binding)
	}
	return row
}

func evaluate(t analysis.Term, binding []value.Value) value.Value {
	if t.IsConst() {
		return t.Const
	}
	return binding[t.Var]
}

// solve calls found with every binding of the body's variables under which all
// atoms and comparisons hold; the first variables are given. A variable that is
// not bound yet has the invalid value.
func solve(db Database, b *analysis.Body, given []value.Value, found func([]value.Value)) {
	binding := make([]value.Value, len(b.Variables))
	copy(binding, given)
	var atom func(i int)
	atom = func(i int) {
		if i == len(b.Atoms) {
			for _, c := range b.Comparisons {
				if !holds(c, binding) {
					return
				}
			}
			found(binding)
			return
		}
		for _, row := range db[b.Atoms[i].Relation] {
			before := slices.Clone(binding)
			if match(b.Atoms[i].Terms, row, binding) {
				atom(i + 1)
			}
			copy(binding, before)
		}
	}
	atom(0)
}

// match binds the terms to the row's cells and reports whether they agree.
func match(terms []analysis.Term, row, binding []value.Value) bool {
	for i, t := range terms {
		switch {
		case t.IsConst():
			if t.Const != row[i] {
				return false
			}
		case binding[t.Var].Kind() == value.Invalid:
			binding[t.Var] = row[i]
		case binding[t.Var] != row[i]:
			return false
		}
	}
	return true
}

func holds(c analysis.Comparison, binding []value.Value) bool {
	order := value.Compare(evaluate(c.Left, binding), evaluate(c.Right, binding))
	switch c.Op {
	case analysis.Eq:
		return order == 0
	case analysis.Ne:
		return order != 0
	case analysis.Lt:
		return order < 0
	case analysis.Le:
		return order <= 0
	case analysis.Gt:
		return order > 0
	default:
		return order >= 0
	}
}
