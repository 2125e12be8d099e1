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
	levels     []level // of the relations
	goals      []*goal
	predicates []*predicate
	rules      []*rule
	inputs     map[analysis.RelationID]*predicate
	patterns   map[pattern]demanded
	derived    map[*predicate]pattern // that rows belong to
	failures   map[failureKey]*predicate
	waiting    []pattern
	asked      map[analysis.RelationID]int // patterns of each relation
	coverings  map[pattern][]*covering
	refutations
	refuted bool  // a covering was relied on that is none
	block   block // that is being added
}

// transform rewrites the program for its goals, and again with less precise demand
// while a cycle of the rules leads through a negation.
func transform(c Config) (*transformer, error) {
	levels := make([]level, len(c.Program.program.Relations))
	refutations := refutations{keys: make(map[string]bool)}
	for attempt := 0; ; {
		t := &transformer{
			program: c.Program.program, prepared: c.Program, symbols: c.Symbols,
			tables: c.Tables, levels: levels,
			inputs:   make(map[analysis.RelationID]*predicate),
			patterns: make(map[pattern]demanded),
			derived:  make(map[*predicate]pattern),
			failures: make(map[failureKey]*predicate),
			asked:    make(map[analysis.RelationID]int),

			coverings: make(map[pattern][]*covering), refutations: refutations,
		}
		for i, q := range c.Goals {
			if err := t.goal(i, q); err != nil {
				return nil, err
			}
		}
		if err := t.finish(c.Goals); err != nil {
			return nil, err
		}
		if t.refuted {
			refutations.count++
			continue
		}
		if t.isStratified(attempt) {
			t.noteWholes()
			return t, nil
		}
		attempt++
	}
}

func (t *transformer) newPredicate(kind predicateKind, arity int) *predicate {
	p := &predicate{number: len(t.predicates), kind: kind, arity: arity, goal: -1, of: -1}
	p.block = t.block
	t.predicates = append(t.predicates, p)
	return p
}

func (t *transformer) input(id analysis.RelationID) *predicate {
	p, ok := t.inputs[id]
	if !ok {
		p = t.newPredicate(base, t.tables[id].Arity())
		p.table, p.block = t.tables[id], block{}
		t.inputs[id] = p
	}
	return p
}

// demandFor returns the predicates of a pattern, and the pattern: it may have fewer
// bound columns.
func (t *transformer) demandFor(p pattern) (demanded, pattern) {
	p.bound &= t.prepared.passes[p.relation]
	if t.levels[p.relation] == whole {
		p.bound = 0
	}
	d, ok := t.patterns[p]
	if !ok && p.bound != 0 && t.asked[p.relation] >= patternsMax {
		p.bound = 0
		d, ok = t.patterns[p]
	}
	if !ok {
		t.asked[p.relation]++
		d.demand = t.newPredicate(demand, p.bound.Len())
		d.rows = t.newPredicate(derived, len(t.program.Relations[p.relation].Columns))
		d.demand.of, d.rows.of = p.relation, p.relation
		d.demand.block = block{kind: patternBlock, pattern: p}
		d.rows.block = d.demand.block
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
	return operand{register: constant, constant: id}, nil
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

// goal adds the rules of one goal.
func (t *transformer) goal(number int, q *analysis.Query) error {
	t.block = goalBlockOf(number)
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
			return err
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
	t.goals = append(t.goals, g)
	t.limit(g, q)
	c := clause{
		name: Clause{Rule: -1, Goal: number}, parameters: parameters,
		head:   atom{predicate: g.result, terms: columns},
		demand: atom{predicate: g.root, terms: asked},
		body:   &q.Body, group: -1, free: false,
	}
	if done, err := t.goalAggregate(c, q); done || err != nil {
		return err
	}
	return t.clause(c)
}

// finish adds the rules of every pattern that a goal needs.
func (t *transformer) finish(goals []*analysis.Query) error {
	for len(t.waiting) > 0 {
		p := t.waiting[0]
		t.waiting = t.waiting[1:]
		d := t.patterns[p]
		if t.levels[p.relation] == whole {
			t.demandWhole(d.demand, p.relation, goals)
		}
		t.block = d.demand.block
		add := t.defined
		if t.isFactored(p) {
			add = t.factored
		}
		if err := add(p, d); err != nil {
			return err
		}
	}
	return nil
}

// defined adds the rules of a pattern, clause by clause.
func (t *transformer) defined(p pattern, d demanded) error {
	for _, i := range t.prepared.clauses[p.relation] {
		r := &t.program.Rules[i]
		head, err := t.operands(headTerms(r))
		if err != nil {
			return err
		}
		c := clause{
			name:   Clause{Rule: i, Goal: -1},
			head:   atom{predicate: d.rows, terms: head},
			demand: atom{predicate: d.demand, terms: boundTerms(head, p.bound)},
			body:   &r.Body, group: t.prepared.components[p.relation], free: p.bound == 0,
		}
		c.given = t.givenTo(p, c.demand.terms)
		if r.Aggregates != nil {
			err = t.aggregated(c, r, len(t.prepared.clauses[p.relation]) == 1)
		} else {
			err = t.clause(c)
		}
		if err != nil {
			return err
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

// implies reports whether a row of atom a exists only if the demand does: it was
// derived under just that demand.
func (t *transformer) implies(a, demand atom) bool {
	p, ok := t.derived[a.predicate]
	return ok && !a.negated && t.patterns[p].demand == demand.predicate &&
		slices.Equal(boundTerms(a.terms, p.bound), demand.terms)
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
