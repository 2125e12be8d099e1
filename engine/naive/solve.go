package naive

import (
	"math"
	"slices"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
)

// stage is a part of a body: see analysis.Body.
type stage struct {
	atoms, negations []analysis.Atom
	// tests hold before the first step, and steps are computations with what is
	// tested after each.
	tests []analysis.Comparison
	steps []step
}

type step struct {
	analysis.Computation
	tests []analysis.Comparison
}

// place is when something is known: in a stage, before (0) or after a step of it.
type place struct{ stage, step int }

const never = math.MaxInt

// divider finds the stages of a body.
type divider struct {
	body         *analysis.Body
	given        int
	variables    []int // the stage in which a variable is bound, by variable
	computed     []bool
	atoms        []int // the stage of each atom
	computations []int
}

// divide returns the stages of a body whose first variables are given.
func divide(b *analysis.Body, given int) []stage {
	d := &divider{
		body: b, given: given,
		variables: slices.Repeat([]int{never}, len(b.Variables)),
		computed:  make([]bool, len(b.Variables)),
		atoms:     slices.Repeat([]int{never}, len(b.Atoms)),
	}
	d.computations = slices.Repeat([]int{never}, len(b.Computations))
	for _, c := range b.Computations {
		d.computed[c.Out] = true
	}
	for i := range given {
		d.variables[i] = 0
	}
	for d.pass() {
	}
	stages := make([]stage, 1)
	at := func(i int) *stage {
		if i == never {
			panic("naive: a literal whose variables nothing binds")
		}
		for len(stages) <= i {
			stages = append(stages, stage{})
		}
		return &stages[i]
	}
	for i, a := range b.Atoms {
		s := at(d.atoms[i])
		s.atoms = append(s.atoms, a)
	}
	for _, a := range b.Negations {
		s := at(d.literal(a.Terms, true))
		s.negations = append(s.negations, a)
	}
	places := make([]place, len(b.Variables))
	for v, s := range d.variables {
		places[v] = place{stage: s}
	}
	for i, c := range b.Computations {
		s := at(d.computations[i])
		s.steps = append(s.steps, step{Computation: c})
		places[c.Out] = place{d.computations[i], len(s.steps)}
	}
	for _, c := range b.Comparisons {
		var p place
		for _, t := range []analysis.Term{c.Left, c.Right} {
			if !t.IsConst() {
				p = later(p, places[t.Var])
			}
		}
		s := at(p.stage)
		tests := &s.tests
		if p.step > 0 {
			tests = &s.steps[p.step-1].tests
		}
		*tests = append(*tests, c)
	}
	return stages
}

// pass lowers the stages of what is found to be known earlier than thought, and
// reports whether it found any.
func (d *divider) pass() bool {
	changed := false
	lower := func(at *int, to int) {
		if to < *at {
			*at, changed = to, true
		}
	}
	for i, a := range d.body.Atoms {
		lower(&d.atoms[i], d.literal(a.Terms, false))
		for _, t := range a.Terms {
			if !t.IsConst() && !d.computed[t.Var] {
				lower(&d.variables[t.Var], d.atoms[i])
			}
		}
	}
	for i, c := range d.body.Computations {
		s := 0
		for _, t := range c.Args {
			if !t.IsConst() {
				s = max(s, d.variables[t.Var])
			}
		}
		lower(&d.computations[i], s)
		lower(&d.variables[c.Out], s)
	}
	return changed
}

// literal returns the stage of an atom or negation: past the computations whose
// results it uses, and for a negation not before the rest of its variables is bound.
func (d *divider) literal(terms []analysis.Term, negated bool) int {
	s := 0
	for _, t := range terms {
		switch {
		case t.IsConst():
		case d.computed[t.Var] && d.variables[t.Var] == never:
			return never
		case d.computed[t.Var]:
			s = max(s, d.variables[t.Var]+1)
		case negated && d.variables[t.Var] != never: // what nothing binds is a `_`
			s = max(s, d.variables[t.Var])
		}
	}
	return s
}

// solver enumerates the bindings of a body.
type solver struct {
	db      *Database
	stages  []stage
	binding []value.Value // of Kind Invalid where nothing is bound yet
	trail   []int         // the variables that atoms have bound, in order
	args    []value.Value
	found   func([]value.Value)
	failed  func(error)
}

// solve calls found with every binding of the body's variables under which it holds;
// the first variables are given. It calls failed once for each binding of a stage's
// atoms under which a computation fails. The binding is valid during the call.
func solve(db *Database, b *analysis.Body, stages []stage, given []value.Value,
	found func([]value.Value), failed func(error),
) {
	s := &solver{
		db: db, stages: stages, found: found, failed: failed,
		binding: make([]value.Value, len(b.Variables)),
	}
	copy(s.binding, given)
	s.join(0, 0)
}

// join matches the atoms of a stage from the given one on, and then goes on.
func (s *solver) join(n, atom int) {
	if n == len(s.stages) {
		s.found(s.binding)
		return
	}
	if atom == len(s.stages[n].atoms) {
		if s.test(n) {
			s.join(n+1, 0)
		}
		return
	}
	a := s.stages[n].atoms[atom]
	for _, row := range s.db.tables[a.Relation].rows {
		mark := len(s.trail)
		if s.match(a.Terms, row) {
			s.join(n, atom+1)
		}
		s.undo(mark)
	}
}

// match binds the terms to the row's cells and reports whether they agree.
func (s *solver) match(terms []analysis.Term, row []value.Value) bool {
	for i, t := range terms {
		switch {
		case t.IsConst():
			if t.Const != row[i] {
				return false
			}
		case s.binding[t.Var].Kind() == value.Invalid:
			s.binding[t.Var] = row[i]
			s.trail = append(s.trail, t.Var)
		case s.binding[t.Var] != row[i]:
			return false
		}
	}
	return true
}

func (s *solver) undo(mark int) {
	for _, v := range s.trail[mark:] {
		s.binding[v] = value.Value{}
	}
	s.trail = s.trail[:mark]
}

// test reports whether the rest of a stage holds, and computes what it computes.
func (s *solver) test(n int) bool {
	st := &s.stages[n]
	for _, a := range st.negations {
		for _, row := range s.db.tables[a.Relation].rows {
			mark := len(s.trail)
			matches := s.match(a.Terms, row)
			s.undo(mark)
			if matches {
				return false
			}
		}
	}
	if !s.all(st.tests) {
		return false
	}
	for i := range st.steps {
		result, err := s.call(&st.steps[i].Computation)
		if err != nil {
			s.failed(err)
			return false
		}
		s.binding[st.steps[i].Out] = result
		if !s.all(st.steps[i].tests) {
			return false
		}
	}
	return true
}

func (s *solver) all(tests []analysis.Comparison) bool {
	return !slices.ContainsFunc(tests, func(c analysis.Comparison) bool {
		return !holds(c, s.binding)
	})
}

// call evaluates a function; with a null argument the result is null.
func (s *solver) call(c *analysis.Computation) (value.Value, error) {
	s.args = s.args[:0]
	for _, t := range c.Args {
		v := evaluate(t, s.binding)
		if v.IsNull() {
			return v, nil
		}
		s.args = append(s.args, v)
	}
	return c.Function.Eval(s.args)
}
