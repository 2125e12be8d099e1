package dataflow

import (
	"fmt"
	"slices"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/relation"
	"github.com/heddle-live/heddle/engine/value"
)

// pattern is a derived relation with the columns whose values its reader knows.
type pattern struct {
	relation analysis.RelationID
	bound    relation.Columns
}

// demanded is what a pattern becomes: the values asked for and the rows found.
type demanded struct {
	demand, rows *predicate
}

// patternsMax bounds the binding patterns of one relation. Rules can be written
// that ask for every subset of the columns; past the limit a relation is asked for
// as a whole, which is always right and at worst slow.
const patternsMax = 64

// transformer rewrites a program for a set of goals, so that every derived
// relation is evaluated for the values that a goal asks for, and no others (magic
// sets). Each goal gets a root predicate of its parameters; each pattern that
// some rule reads gets a demand predicate and one of rows:
//
//	rows(head) <- demand(bound head columns), body
//	demand'(bound columns of a body atom) <- demand(...), body before that atom
//
// A demand that another atom of the body implies is left out.
//
// A pattern without bound columns has a demand of arity 0: while that holds, the
// whole relation is derived.
type transformer struct {
	program    *analysis.Program
	prepared   *Prepared
	symbols    Symbols
	tables     []*relation.Relation
	predicates []*predicate
	rules      []*rule
	inputs     map[analysis.RelationID]*predicate
	patterns   map[pattern]demanded
	derived    map[*predicate]pattern // that rows belong to
	waiting    []pattern
	asked      map[analysis.RelationID]int // patterns of each relation
}

func newTransformer(c Config) *transformer {
	return &transformer{
		program: c.Program.program, prepared: c.Program, symbols: c.Symbols, tables: c.Tables,
		inputs:   make(map[analysis.RelationID]*predicate),
		patterns: make(map[pattern]demanded),
		derived:  make(map[*predicate]pattern),
		asked:    make(map[analysis.RelationID]int),
	}
}

func (t *transformer) newPredicate(kind predicateKind, arity int) *predicate {
	p := &predicate{number: len(t.predicates), kind: kind, arity: arity, goal: -1}
	t.predicates = append(t.predicates, p)
	return p
}

func (t *transformer) input(id analysis.RelationID) *predicate {
	p, ok := t.inputs[id]
	if !ok {
		p = &predicate{number: len(t.predicates), kind: base, goal: -1, table: t.tables[id]}
		p.arity = p.table.Arity()
		t.predicates = append(t.predicates, p)
		t.inputs[id] = p
	}
	return p
}

// demandFor returns the predicates of a pattern, and the pattern: it may be the
// free one instead.
func (t *transformer) demandFor(p pattern) (demanded, pattern) {
	d, ok := t.patterns[p]
	if !ok && p.bound != 0 && t.asked[p.relation] >= patternsMax {
		p.bound = 0
		d, ok = t.patterns[p]
	}
	if !ok {
		t.asked[p.relation]++
		d.demand = t.newPredicate(demand, p.bound.Len())
		d.rows = t.newPredicate(derived, len(t.program.Relations[p.relation].Columns))
		t.patterns[p] = d
		t.derived[d.rows] = p
		t.waiting = append(t.waiting, p)
	}
	return d, p
}

func (t *transformer) operand(term analysis.Term) (operand, error) {
	if !term.IsConst() {
		return operand{register: term.Var}, nil
	}
	id, err := t.symbols.ID(term.Const)
	if err != nil {
		return operand{}, fmt.Errorf("constant %v: %w", term.Const, err)
	}
	return operand{register: -1, constant: id}, nil
}

func (t *transformer) operands(terms []analysis.Term) ([]operand, error) {
	out := make([]operand, len(terms))
	for i, term := range terms {
		var err error
		if out[i], err = t.operand(term); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// goal adds the rules of one goal and returns where its output comes from.
func (t *transformer) goal(number int, q *analysis.Query) (*goal, error) {
	parameters := len(q.Parameters)
	g := &goal{root: t.newPredicate(root, parameters)}
	columns := make([]operand, parameters)
	place := make(map[int]int) // of a variable, in the result
	for i := range columns {
		columns[i] = operand{register: i}
		place[i] = i
	}
	asked := columns[:parameters:parameters]
	for _, term := range q.Output {
		o, err := t.operand(term)
		if err != nil {
			return nil, err
		}
		source := Source{Column: -1, Constant: o.constant}
		if o.register >= 0 {
			at, ok := place[o.register]
			if !ok {
				at = len(columns)
				place[o.register] = at
				columns = append(columns, o)
			}
			source = Source{Column: at}
		}
		g.outputs = append(g.outputs, source)
	}
	g.result = t.newPredicate(result, len(columns))
	g.root.goal, g.result.goal = number, number
	return g, t.clause(clause{
		head: atom{g.result, columns}, demand: atom{g.root, asked}, body: &q.Body,
		group: -1, free: false,
	})
}

// finish adds the rules of every pattern that a goal needs.
func (t *transformer) finish() error {
	for len(t.waiting) > 0 {
		p := t.waiting[0]
		t.waiting = t.waiting[1:]
		d := t.patterns[p]
		for _, r := range t.prepared.clauses[p.relation] {
			head, err := t.operands(r.Head.Terms)
			if err != nil {
				return err
			}
			err = t.clause(clause{
				head: atom{d.rows, head}, demand: atom{d.demand, boundTerms(head, p.bound)},
				body: &r.Body, group: t.prepared.components[p.relation], free: p.bound == 0,
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func boundTerms(terms []operand, bound relation.Columns) []operand {
	var out []operand
	for c, o := range terms {
		if bound.Has(c) {
			out = append(out, o)
		}
	}
	return out
}

// clause is one body to be rewritten for one head.
type clause struct {
	head, demand atom
	body         *analysis.Body
	// group is the program component of the head's relation, -1 for a goal. With
	// free, nothing of the head is bound, and atoms of the group are then read
	// free as well: the whole relation is wanted, so one copy of it will do.
	group int
	free  bool
}

func (t *transformer) clause(c clause) error {
	unfolded := t.prepared.unfold(c.body)
	c.body = &unfolded
	atoms := make([][]operand, len(c.body.Atoms))
	for i, a := range c.body.Atoms {
		var err error
		if atoms[i], err = t.operands(a.Terms); err != nil {
			return err
		}
	}
	filters := make([]filter, len(c.body.Comparisons))
	for i, cmp := range c.body.Comparisons {
		sides, err := t.operands([]analysis.Term{cmp.Left, cmp.Right})
		if err != nil {
			return err
		}
		filters[i] = filter{op: comparison(cmp.Op), left: sides[0], right: sides[1]}
	}
	bound := make(boundSet, len(c.body.Variables))
	bound.bind(c.demand)
	body := []atom{c.demand}
	left := make([]bool, len(atoms))
	for range atoms {
		i := t.nextAtom(c.body.Atoms, atoms, left, bound)
		left[i] = true
		id := c.body.Atoms[i].Relation
		if !t.program.Relations[id].Derived {
			body = append(body, atom{t.input(id), atoms[i]})
			bound.bind(body[len(body)-1])
			continue
		}
		p := pattern{relation: id, bound: boundColumns(atoms[i], bound)}
		if c.free && t.prepared.components[id] == c.group {
			p.bound = 0
		}
		d, p := t.demandFor(p)
		t.addRule(atom{d.demand, boundTerms(atoms[i], p.bound)}, body, filters, bound)
		body = append(body, atom{d.rows, atoms[i]})
		bound.bind(body[len(body)-1])
	}
	t.addRule(c.head, body, filters, bound)
	return nil
}

// implies reports whether a row of atom a exists only if the demand does: it was
// derived under just that demand.
func (t *transformer) implies(a, demand atom) bool {
	p, ok := t.derived[a.predicate]
	return ok && t.patterns[p].demand == demand.predicate &&
		slices.Equal(boundTerms(a.terms, p.bound), demand.terms)
}

// addRule adds head <- body with those filters that bound decides, unless the
// head stands in its own body and so derives nothing.
func (t *transformer) addRule(head atom, body []atom, filters []filter, bound boundSet) {
	r := &rule{head: head, registers: len(bound)}
	if slices.ContainsFunc(body[1:], func(a atom) bool { return t.implies(a, body[0]) }) {
		body = body[1:]
	}
	for _, a := range body {
		if a.equal(head) {
			return
		}
		r.body = append(r.body, a)
	}
	for _, f := range filters {
		if bound.has(f.left) && bound.has(f.right) {
			r.filters = append(r.filters, f)
		}
	}
	t.rules = append(t.rules, r)
}

func boundColumns(terms []operand, bound boundSet) relation.Columns {
	var set relation.Columns
	for c, o := range terms {
		if bound.has(o) {
			set |= 1 << c
		}
	}
	return set
}

// nextAtom chooses the body atom that demand reaches next: one that is wholly
// bound, or else the one with most columns bound; base before derived, since a
// base atom narrows what is asked of the derived ones after it.
func (t *transformer) nextAtom(atoms []analysis.Atom, terms [][]operand, taken []bool,
	bound boundSet,
) int {
	best, bestScore := -1, 0
	for i, a := range atoms {
		if taken[i] {
			continue
		}
		kind := base
		if t.program.Relations[a.Relation].Derived {
			kind = derived
		}
		n := boundColumns(terms[i], bound).Len()
		if s := score(n, len(terms[i]), kind, false); best < 0 || s > bestScore {
			best, bestScore = i, s
		}
	}
	return best
}

// score rates an atom for a greedy order: n of its columns are bound. Atoms
// inside the head's own component come last among equals, because their posting
// lists are those that grow with the closure.
func score(n, arity int, kind predicateKind, inside bool) int {
	s := 8*(20*n-2*(arity-n)) + int(kind)
	switch {
	case n == arity:
		s = 1<<20 + int(kind) // a probe is a probe, whatever its width
	case n > 0:
		s += 1 << 13
	case kind == derived:
		s -= 1 << 13 // all of it would have to be derived
	}
	if inside {
		s -= 4
	}
	return s
}

// Source tells where an output column of a goal comes from: a column of its
// result, or with Column < 0 a constant.
type Source struct {
	Column   int
	Constant value.ID
}
