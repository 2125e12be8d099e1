package dataflow

import (
	"slices"

	"github.com/heddle-live/heddle/engine/analysis"
)

// stages divides a body's literals where an atom or a negation uses what a
// computation binds: a change of such an atom cannot be followed backwards through
// the computation, so that what comes before it needs a predicate of its own.
type stages struct {
	count        int
	computed     []bool // of variables
	variables    []int  // the stage that binds each variable
	atoms        []int
	negations    []int
	computations []int
}

// unbound is the stage of a variable that nothing binds, and of an atom that uses
// the result of a computation not looked at yet.
const unbound = 1 << 30

// stagesOf finds the stages of a body whose first variables are parameters. See
// analysis.Body.
func stagesOf(b *analysis.Body, parameters int) *stages {
	s := &stages{
		computed:     make([]bool, len(b.Variables)),
		variables:    slices.Repeat([]int{unbound}, len(b.Variables)),
		atoms:        make([]int, len(b.Atoms)),
		negations:    make([]int, len(b.Negations)),
		computations: make([]int, len(b.Computations)),
	}
	for _, c := range b.Computations {
		s.computed[c.Out] = true
	}
	for v := range parameters {
		s.variables[v] = 0
	}
	for i, c := range b.Computations {
		s.bindAtoms(b)
		s.computations[i] = s.latest(c.Args)
		s.variables[c.Out] = s.computations[i]
	}
	s.bindAtoms(b)
	last := 0
	for i, a := range b.Negations {
		for _, t := range a.Terms {
			if !t.IsConst() && s.variables[t.Var] != unbound {
				s.negations[i] = max(s.negations[i], s.usable(t.Var))
			}
		}
	}
	for _, of := range [][]int{s.atoms, s.negations, s.computations} {
		for _, at := range of {
			last = max(last, at)
		}
	}
	s.count = last + 1
	return s
}

// usable returns the first stage whose atoms can use a variable.
func (s *stages) usable(v int) int {
	if s.computed[v] && s.variables[v] != unbound {
		return s.variables[v] + 1
	}
	return s.variables[v]
}

// latest returns the first stage in which all the terms are known.
func (s *stages) latest(terms []analysis.Term) int {
	at := 0
	for _, t := range terms {
		if !t.IsConst() {
			at = max(at, s.variables[t.Var])
		}
	}
	return at
}

// bindAtoms gives atoms and what they bind the stages that the computations so far
// allow.
func (s *stages) bindAtoms(b *analysis.Body) {
	for i, a := range b.Atoms {
		s.atoms[i] = 0
		for _, t := range a.Terms {
			if !t.IsConst() && s.computed[t.Var] {
				s.atoms[i] = max(s.atoms[i], s.usable(t.Var))
			}
		}
		for _, t := range a.Terms {
			if !t.IsConst() && !s.computed[t.Var] {
				s.variables[t.Var] = min(s.variables[t.Var], s.atoms[i])
			}
		}
	}
}

// binding returns what the atoms and parameters of the stages up to s bind.
func (s *stages) binding(stage int) []analysis.Term {
	var out []analysis.Term
	for v, at := range s.variables {
		if at <= stage && !s.computed[v] {
			out = append(out, analysis.Term{Var: v})
		}
	}
	return out
}
