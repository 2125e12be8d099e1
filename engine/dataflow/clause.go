package dataflow

import (
	"slices"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/relation"
)

// clause is one body to be rewritten for one head.
type clause struct {
	name         Clause
	parameters   int // the body's first variables, which demand binds
	head, demand atom
	body         *analysis.Body
	// group is the program component of the head's relation, -1 for a goal. With
	// free, nothing of the head is bound, and atoms of the group are then read
	// free as well: the whole relation is wanted, so one copy of it will do.
	group int
	free  bool
	// Of an aggregating clause: the head needs the whole binding, and early filters
	// come with the aggregate, or late ones that are tested after all computations.
	aggregates  bool
	early, late []filter
	given       []cover // what covers atoms before the body begins
	// outside is what others ask for, if demand is what the clause reaches by itself.
	outside atom
	// known are terms that the demand binds though no atom of the body does: those
	// of the atom that was taken out of it.
	known []analysis.Term
}

// rewriter makes the rules of one clause.
type rewriter struct {
	*transformer
	clause
	stages       *stages
	atoms        [][]operand
	negations    [][]operand
	filters      []filter
	computations []computation
	// What is used up already.
	atomsUsed, negationsUsed, filtersUsed []bool

	bound boundSet
	// literals are those of the present stage so far that rules of demand use as
	// well: the demand or what the stage before derived, atoms, and negations
	// that no demand can lead back to. later holds the other negations.
	literals, later []atom
	before          []cover // what covers atoms before the present stage
}

func (t *transformer) clause(c clause) error {
	unfolded := t.prepared.unfold(c.body, c.parameters)
	c.body = &unfolded
	w := &rewriter{
		transformer: t, clause: c, stages: stagesOf(c.body, c.parameters),
		bound:    make(boundSet, len(c.body.Variables)),
		literals: []atom{c.demand}, before: c.given,
	}
	if w.outside.predicate == nil {
		w.outside = w.demand
	}
	for _, t := range c.known {
		if !t.IsConst() {
			w.stages.variables[t.Var] = 0
		}
	}
	if err := w.translate(); err != nil {
		return err
	}
	w.bound.bind(c.demand)
	for s := range w.stages.count {
		w.stage(s)
		if s < w.stages.count-1 {
			w.cut(s)
		}
	}
	w.rule(c.head, w.stages.count-1)
	return nil
}

// translate turns the body's terms into operands.
func (w *rewriter) translate() error {
	b := w.body
	var err error
	w.atoms, w.atomsUsed = make([][]operand, len(b.Atoms)), make([]bool, len(b.Atoms))
	for i, a := range b.Atoms {
		if w.atoms[i], err = w.operands(a.Terms); err != nil {
			return err
		}
	}
	w.negations = make([][]operand, len(b.Negations))
	w.negationsUsed = make([]bool, len(b.Negations))
	for i, a := range b.Negations {
		if w.negations[i], err = w.operands(a.Terms); err != nil {
			return err
		}
		for c, o := range w.negations[i] {
			if o.register >= 0 && w.stages.variables[o.register] == unbound {
				w.negations[i][c] = operand{register: anything}
			}
		}
	}
	for _, cmp := range b.Comparisons {
		sides, err := w.operands([]analysis.Term{cmp.Left, cmp.Right})
		if err != nil {
			return err
		}
		w.filters = append(w.filters, filter{comparison(cmp.Op), sides[0], sides[1]})
	}
	w.filters = append(w.filters, w.early...)
	w.filtersUsed = make([]bool, len(w.filters))
	for _, c := range b.Computations {
		args, err := w.operands(c.Args)
		if err != nil {
			return err
		}
		w.computations = append(w.computations, computation{c.Out, c.Function, args})
	}
	return nil
}

// stage uses up the atoms and negations of a stage, and asks for those that are
// derived.
func (w *rewriter) stage(s int) {
	w.negate(s, false)
	for i := w.nextAtom(s); i >= 0; i = w.nextAtom(s) {
		w.atomsUsed[i] = true
		a := atom{predicate: nil, terms: w.atoms[i]}
		id := w.body.Atoms[i].Relation
		if w.program.Relations[id].Derived {
			a.predicate = w.ask(id, a.terms, false)
		} else {
			a.predicate = w.input(id)
		}
		w.literals = append(w.literals, a)
		w.bound.bind(a)
		w.negate(s, false)
	}
	w.negate(s, true)
}

// ask demands of a derived relation what is bound of an atom, and returns the
// predicate of its rows.
func (w *rewriter) ask(id analysis.RelationID, terms []operand, negated bool) *predicate {
	p := pattern{relation: id, bound: boundColumns(terms, w.bound)}
	body := w.literals
	if w.levels[id] == outer {
		asked := make(boundSet, len(w.bound))
		asked.bind(w.outside)
		p.bound = boundColumns(terms, asked)
		body = []atom{w.outside}
	}
	// A negation must not read more than it has to where that may close a cycle.
	if rows := w.covered(p, terms); rows != nil && !(negated && w.levels[id] > 0) {
		return rows
	}
	if w.free && w.prepared.components[id] == w.group {
		p.bound = 0
	}
	d, p := w.demandFor(p)
	if w.levels[id] != whole {
		asked := boundTerms(terms, p.bound)
		r := &rule{
			clause: w.name, head: atom{predicate: d.demand, terms: asked},
			body: body, registers: len(w.bound),
		}
		if w.levels[id] == outer {
			w.asks(p, asked, w.given)
		} else {
			w.asks(p, asked, w.covers())
			r.filters = w.known()
		}
		w.addRule(r)
	}
	return d.rows
}

// negate uses up the negations of a stage that can be tested. Those of derived
// relations wait for the stage's end, unless that is now: the more atoms come before
// them, the less is asked for.
func (w *rewriter) negate(s int, end bool) {
	for i, terms := range w.negations {
		if w.negationsUsed[i] || w.stages.negations[i] != s || !w.bound.hasAll(terms) {
			continue
		}
		a := atom{terms: terms, negated: true}
		switch id := w.body.Negations[i].Relation; {
		case !w.program.Relations[id].Derived:
			a.predicate = w.input(id)
			w.literals = append(w.literals, a)
		case w.levels[id] == whole:
			a.predicate = w.ask(id, terms, true)
			w.literals = append(w.literals, a)
		case end || w.levels[id] == early:
			a.predicate = w.ask(id, terms, true)
			w.later = append(w.later, a)
		default:
			continue
		}
		w.negationsUsed[i] = true
	}
}

// known returns the unused filters whose sides are known.
func (w *rewriter) known() []filter {
	var out []filter
	for i, f := range w.filters {
		if !w.filtersUsed[i] && w.bound.has(f.left) && w.bound.has(f.right) {
			out = append(out, f)
		}
	}
	return out
}

// rule adds a rule of the present stage's literals and computations.
func (w *rewriter) rule(head atom, s int) {
	r := &rule{
		clause: w.name, head: head, body: slices.Concat(w.literals, w.later),
		registers: len(w.bound),
	}
	for i, c := range w.computations {
		if w.stages.computations[i] == s {
			if r.computations == nil {
				r.failure = w.failure(s)
			}
			r.computations = append(r.computations, c)
		}
	}
	for _, c := range r.computations {
		w.bound[c.out] = true
	}
	r.filters = w.known()
	if w.aggregates && head.predicate == w.head.predicate {
		r.strict, r.late = true, w.late
	}
	w.addRule(r)
}

// cut ends a stage that is not the last one: what is needed of its bindings from
// then on goes into a predicate of its own.
func (w *rewriter) cut(s int) {
	var terms []operand
	for v, isNeeded := range w.needed(s) {
		if isNeeded {
			terms = append(terms, operand{register: v})
		}
	}
	between := w.newPredicate(derived, len(terms))
	w.rule(atom{predicate: between, terms: terms}, s)
	known := project(w.covers(), terms)
	for i := range known {
		for k, o := range known[i].terms {
			if o.register != constant {
				known[i].terms[k] = terms[o.register]
			}
		}
	}
	w.before = known
	for i, f := range w.filters {
		w.filtersUsed[i] = w.filtersUsed[i] || w.bound.has(f.left) && w.bound.has(f.right)
	}
	w.literals, w.later = []atom{{predicate: between, terms: terms}}, nil
	clear(w.bound)
	w.bound.bind(w.literals[0])
}

// needed returns the variables that stage s knows and that are used after it.
// Failing bindings are told and counted whole.
func (w *rewriter) needed(s int) []bool {
	needed := make([]bool, len(w.bound))
	given := make(boundSet, len(w.bound)) // what only demand binds is of no stage
	given.bind(w.demand)
	use := func(terms ...operand) {
		for _, o := range terms {
			if o.register >= 0 && (w.stages.variables[o.register] <= s || given[o.register]) {
				needed[o.register] = true
			}
		}
	}
	use(w.head.terms...)
	if w.aggregates {
		use(w.binding(s)...)
	}
	for i, terms := range w.atoms {
		if w.stages.atoms[i] > s {
			use(terms...)
		}
	}
	for i, terms := range w.negations {
		if w.stages.negations[i] > s {
			use(terms...)
		}
	}
	for i, f := range w.filters {
		if !w.filtersUsed[i] && (!w.isKnown(f.left, s) || !w.isKnown(f.right, s)) {
			use(f.left, f.right)
		}
	}
	for i, c := range w.computations {
		if w.stages.computations[i] > s {
			use(c.args...)
			use(w.binding(s)...)
		}
	}
	return needed
}

func (w *rewriter) isKnown(o operand, s int) bool {
	return o.register < 0 || w.stages.variables[o.register] <= s
}

// binding returns what the atoms and parameters of the stages up to s bind.
func (w *rewriter) binding(s int) []operand {
	var out []operand
	for _, t := range w.stages.binding(s) {
		out = append(out, operand{register: t.Var})
	}
	return out
}

type failureKey struct {
	clause Clause
	stage  int
}

// failure returns what is derived when a computation of stage s fails. All patterns
// of a clause share it, so that each binding is counted once.
func (w *rewriter) failure(s int) atom {
	terms := w.binding(s)
	return atom{predicate: w.failed(failureKey{w.name, s}, len(terms)), terms: terms}
}

func (t *transformer) failed(key failureKey, arity int) *predicate {
	p := t.failures[key]
	if p == nil {
		p = t.newPredicate(failure, arity)
		p.block = block{kind: failureBlock, failure: key}
		t.failures[key] = p
	}
	return p
}

// addRule adds a rule, unless its head stands in its own body and so derives
// nothing, nor fails.
func (t *transformer) addRule(r *rule) {
	body := r.body
	if slices.ContainsFunc(body[1:], func(a atom) bool { return t.implies(a, body[0]) }) {
		body = body[1:]
	}
	r.body, r.block = slices.Clone(body), t.block
	if r.computations == nil &&
		slices.ContainsFunc(r.body, func(a atom) bool { return a.equal(r.head) }) {
		return
	}
	t.rules = append(t.rules, r)
}

// nextAtom chooses the atom of a stage that demand reaches next: one that is wholly
// bound, or else the one with most columns bound; base before derived, since a
// base atom narrows what is asked of the derived ones after it. It returns -1 when
// the stage has no more.
func (w *rewriter) nextAtom(s int) int {
	best, bestScore := -1, 0
	for i, a := range w.body.Atoms {
		if w.atomsUsed[i] || w.stages.atoms[i] != s {
			continue
		}
		kind := base
		if w.program.Relations[a.Relation].Derived {
			kind = derived
		}
		n := boundColumns(w.atoms[i], w.bound).Len()
		if sc := score(n, len(w.atoms[i]), kind, false); best < 0 || sc > bestScore {
			best, bestScore = i, sc
		}
	}
	return best
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
