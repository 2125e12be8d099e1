package dataflow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/heddle-live/heddle/engine/analysis"
)

// notes says what was done to the rules of the subject, and what was refused.
func (x *explainer) notes() {
	n := x.network
	add := func(format string, args ...any) {
		x.out.Notes = append(x.out.Notes, fmt.Sprintf(format, args...))
	}
	wholes := n.Wholes()
	for id, r := range n.program.Relations {
		if !x.relevant[id] || !r.Derived {
			continue
		}
		if len(x.out.Notes) >= explainedRules {
			add("there are notes on more relations: explain one of them")
			break
		}
		relation := analysis.RelationID(id)
		switch reason := n.prepared.keeps(relation); {
		case reason == "":
			add("%s is unfolded into the rules that read it: each of its rows has one derivation",
				r.Name)
		default:
			add("%s is not unfolded: %s", r.Name, reason)
		}
		for _, w := range wholes {
			if w.Relation == relation {
				add("%s", w.Reason)
			}
		}
		patterns := x.patternsOf(relation)
		if len(patterns) >= patternsMax {
			add("%s is asked for in %d ways: whoever asks in another gets all of it", r.Name,
				len(patterns))
		}
		x.recursion(relation, patterns, add)
		x.passing(relation, add)
	}
}

// patternsOf returns the patterns of a relation in the order of their letters.
func (x *explainer) patternsOf(id analysis.RelationID) []pattern {
	out := x.asked[id]
	slices.SortFunc(out, func(a, b pattern) int {
		rows := x.network.patterns
		return strings.Compare(x.names[rows[a].rows], x.names[rows[b].rows])
	})
	return out
}

// recursion says how recursive patterns are evaluated.
func (x *explainer) recursion(id analysis.RelationID, patterns []pattern,
	add func(string, ...any),
) {
	n := x.network
	t := &transformer{program: n.program, prepared: n.prepared}
	for _, p := range patterns {
		d := n.patterns[p]
		name := x.names[d.rows]
		switch {
		case t.isFactored(p):
			add("%s is factored: what is reached and what is found there are kept apart, since "+
				"its recursion is right-linear", name)
		case !d.rows.component.recursive:
		case p.bound == 0 || p.bound.Len() == len(n.program.Relations[id].Columns):
			add("%s is recursive; its rows have ranks", name)
		default:
			add("%s is recursive and not factored, since its rules are not right-linear in the "+
				"columns that are asked for; its rows have ranks", name)
		}
	}
}

// passing says which columns demand does not pass through.
func (x *explainer) passing(id analysis.RelationID, add func(string, ...any)) {
	var stopped []string
	for c, column := range x.network.program.Relations[id].Columns {
		if !x.network.prepared.passes[id].Has(c) {
			stopped = append(stopped, column.Name)
		}
	}
	if len(stopped) > 0 {
		add("%s is never asked for by %s, which some rule computes or aggregates",
			x.network.program.Relations[id].Name, strings.Join(stopped, ", "))
	}
}

// keeps says why a derived relation has rows of its own, "" if it is unfolded.
func (u *Prepared) keeps(id analysis.RelationID) string {
	clauses := u.clauses[id]
	switch {
	case u.definition(id) != nil:
		return ""
	case len(clauses) != 1:
		return fmt.Sprintf("it has %d rules", len(clauses))
	}
	r := &u.program.Rules[clauses[0]]
	switch {
	case r.Aggregates != nil:
		return "it aggregates"
	case len(r.Body.Computations) > 0:
		return "it computes"
	case isSimple(r):
		return "it is recursive"
	}
	inHead := make([]bool, len(r.Body.Variables))
	for _, t := range r.Head.Terms {
		if t.IsConst() || inHead[t.Var] {
			return "its head has a constant, or a variable twice"
		}
		inHead[t.Var] = true
	}
	for _, a := range r.Body.Atoms {
		for _, t := range a.Terms {
			if !t.IsConst() && !inHead[t.Var] {
				name := r.Body.Variables[t.Var].Name
				if name == "" {
					name = "_"
				}
				return "its head leaves out " + name +
					", so that a row may have several derivations"
			}
		}
	}
	return "it would make bodies too long"
}
