// Package naive is the slow twin of the rule engine: it derives everything from
// scratch, row by row, by the definition of the language. Tests compare the
// incremental engine with it. It shares no code with what it checks, nothing in it
// depends on the order of a map, and nothing but tests calls it.
package naive

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

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

// Rows returns the rows of the set, sorted.
func (s Set) Rows() [][]value.Value {
	return slices.SortedFunc(maps.Values(s), CompareRows)
}

// spelling is the same for equal rows only: kinds stand before the values.
func spelling(row []value.Value) string {
	b := make([]byte, 0, 8*len(row))
	for _, v := range row {
		b = append(b, '0'+byte(v.Kind()))
		switch v.Kind() {
		case value.Int:
			b = strconv.AppendInt(b, v.Int(), 10)
		case value.String:
			b = strconv.AppendInt(b, int64(len(v.Str())), 10)
			b = append(b, ' ')
			b = append(b, v.Str()...)
		default:
			b = append(b, v.String()...)
		}
		b = append(b, '\n')
	}
	return string(b)
}

// CompareRows orders rows of equal length by value.Compare, column by column.
func CompareRows(a, b []value.Value) int { return slices.CompareFunc(a, b, value.Compare) }

// Facts maps the names of base relations to their rows.
type Facts map[string]Set

// Clone returns a copy whose sets can be changed by themselves.
func (f Facts) Clone() Facts {
	out := Facts{}
	for name, set := range f {
		out[name] = maps.Clone(set)
	}
	return out
}

// table holds the rows of a relation, in the order in which they were derived.
type table struct {
	set  map[string]struct{}
	rows [][]value.Value
}

func (t *table) add(row []value.Value) bool {
	k := spelling(row)
	if _, ok := t.set[k]; ok {
		return false
	}
	t.set[k] = struct{}{}
	t.rows = append(t.rows, row)
	return true
}

// Database is a program's model over facts: the rows of every relation, and the row
// errors of every clause.
type Database struct {
	program  *analysis.Program
	tables   []*table
	failures []Failures // by rule
	doubts   []Doubt    // by relation
}

// Failures counts a clause's row errors.
type Failures struct {
	Body int // bindings for which a computation failed
	Head int // groups whose aggregate failed
}

// Derive returns all relations of a program over the given facts: stratum by
// stratum, the least sets closed under the rules.
func Derive(p *analysis.Program, facts Facts) *Database {
	db := &Database{
		program: p, tables: make([]*table, len(p.Relations)),
		failures: make([]Failures, len(p.Rules)),
	}
	for i, r := range p.Relations {
		db.tables[i] = &table{set: map[string]struct{}{}}
		if !r.Derived {
			set := facts[r.Name]
			for _, k := range slices.Sorted(maps.Keys(set)) {
				db.tables[i].add(set[k])
			}
		}
	}
	strata := strata(p)
	for s := range slices.Max(append(strata, 0)) + 1 {
		var rules []*clause
		for i := range p.Rules {
			if r := &p.Rules[i]; strata[r.Head.Relation] == s {
				rules = append(rules, &clause{rule: r, index: i, stages: divide(&r.Body, 0)})
			}
		}
		for changed := true; changed; {
			changed = false
			for _, c := range rules {
				for _, row := range c.derive(db) {
					changed = db.tables[c.rule.Head.Relation].add(row) || changed
				}
			}
		}
	}
	db.doubt()
	return db
}

// clause is a rule with its body divided into stages.
type clause struct {
	rule   *analysis.Rule
	index  int
	stages []stage
}

// derive returns the rows that the clause derives from what is there, and sets its
// count of errors.
func (c *clause) derive(db *Database) [][]value.Value {
	failures := &db.failures[c.index]
	*failures = Failures{}
	failed := func(error) { failures.Body++ }
	if c.rule.Aggregates != nil {
		g := newGroups(c.rule)
		solve(db, &c.rule.Body, c.stages, nil, g.add, failed)
		return g.rows(func() { failures.Head++ })
	}
	var rows [][]value.Value
	solve(db, &c.rule.Body, c.stages, nil, func(binding []value.Value) {
		rows = append(rows, instantiate(c.rule.Head.Terms, binding))
	}, failed)
	return rows
}

// strata numbers the relations so that what a clause negates or aggregates over is
// below its head, and everything else that it reads is not above.
func strata(p *analysis.Program) []int {
	out := make([]int, len(p.Relations))
	for changed := true; changed; {
		changed = false
		raise := func(head analysis.RelationID, to int) {
			if out[head] >= to {
				return
			}
			if to >= len(p.Relations) {
				panic("naive: the program is not stratified")
			}
			out[head], changed = to, true
		}
		for i := range p.Rules {
			r := &p.Rules[i]
			for _, a := range r.Body.Atoms {
				above := 0
				if r.Aggregates != nil {
					above = 1
				}
				raise(r.Head.Relation, out[a.Relation]+above)
			}
			for _, a := range r.Body.Negations {
				raise(r.Head.Relation, out[a.Relation]+1)
			}
		}
	}
	return out
}

// Rows returns the rows of a relation, sorted.
func (db *Database) Rows(id analysis.RelationID) [][]value.Value {
	return slices.SortedFunc(slices.Values(db.tables[id].rows), CompareRows)
}

// Failures returns the counts of row errors of Program.Rules[rule].
func (db *Database) Failures(rule int) Failures { return db.failures[rule] }

// Answer returns the rows of a query, sorted, without duplicates; of a query with a
// limit, those in its window.
func Answer(db *Database, q *analysis.Query, parameters []value.Value) [][]value.Value {
	rows, _ := db.Ask(q, parameters)
	return rows
}

// Ask is Answer that also tells how far the rows can be trusted.
func (db *Database) Ask(q *analysis.Query, parameters []value.Value) ([][]value.Value, Doubt) {
	rows, doubt := db.InOrder(q, parameters)
	slices.SortFunc(rows, CompareRows)
	return rows, doubt
}

// InOrder is Ask with the rows in the query's order.
func (db *Database) InOrder(q *analysis.Query, parameters []value.Value) ([][]value.Value, Doubt) {
	rows, failures := db.all(q, parameters)
	doubt := db.doubtOf(&q.Body, failures)
	slices.SortStableFunc(rows, func(a, b []value.Value) int {
		for _, o := range q.Order {
			c := value.Compare(a[o.Column], b[o.Column])
			if o.Descending {
				c = -c
			}
			if c != 0 {
				return c
			}
		}
		return 0
	})
	if q.Limit > 0 {
		rows = rows[min(q.Offset, len(rows)):]
		rows = rows[:min(q.Limit, len(rows))]
	}
	return rows, doubt
}

// all returns the rows of a query without its window, sorted, and counts its own
// row errors.
func (db *Database) all(q *analysis.Query, parameters []value.Value) ([][]value.Value, int) {
	set, failures := Set{}, 0
	solve(db, &q.Body, divide(&q.Body, len(q.Parameters)), parameters,
		func(binding []value.Value) { set.Add(instantiate(q.Output, binding)) },
		func(error) { failures++ })
	return set.Rows(), failures
}

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

// Doubt says how row errors touch a relation or query.
type Doubt uint8

// The doubts, from none to worst.
const (
	Sure    Doubt = iota
	Flagged       // rows may be missing: a clause that it depends on has errors
	Unsure        // rows may be wrong: it negates or aggregates over such a relation
)

// doubt derives the doubts of all relations from the clauses' errors.
func (db *Database) doubt() {
	db.doubts = make([]Doubt, len(db.tables))
	for changed := true; changed; {
		changed = false
		for i := range db.program.Rules {
			r, f := &db.program.Rules[i], db.failures[i]
			d := db.doubtOf(&r.Body, f.Body)
			if d > Sure && r.Aggregates != nil {
				d = Unsure
			}
			if f.Head > 0 {
				d = max(d, Flagged)
			}
			if at := &db.doubts[r.Head.Relation]; *at < d {
				*at, changed = d, true
			}
		}
	}
}

func (db *Database) doubtOf(b *analysis.Body, failures int) Doubt {
	d := Sure
	if failures > 0 {
		d = Flagged
	}
	for _, a := range b.Atoms {
		d = max(d, db.doubts[a.Relation])
	}
	for _, a := range b.Negations {
		if db.doubts[a.Relation] > Sure {
			d = Unsure
		}
	}
	return d
}

// holds reports whether the comparison is true. null is smaller than every value.
func holds(c analysis.Comparison, binding []value.Value) bool {
	left, right := evaluate(c.Left, binding), evaluate(c.Right, binding)
	switch c.Op {
	case analysis.Eq:
		return left == right
	case analysis.Ne:
		return left != right
	case analysis.Lt:
		return value.Compare(left, right) < 0
	case analysis.Le:
		return value.Compare(left, right) <= 0
	case analysis.Gt:
		return value.Compare(left, right) > 0
	default:
		return value.Compare(left, right) >= 0
	}
}

// later returns the later of two places in a body's order of evaluation.
func later(a, b place) place {
	if c := cmp.Or(cmp.Compare(a.stage, b.stage), cmp.Compare(a.step, b.step)); c < 0 {
		return b
	}
	return a
}
