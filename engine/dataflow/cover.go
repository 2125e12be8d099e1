package dataflow

import (
	"fmt"
	"slices"
)

// An atom need not be asked for where its rows are there anyway: where an atom before
// it in the body has the same relation and was asked for by fewer columns.
//
//	clash(P, D, E) <- needs(P, D), conflicts(D, E), needs(P, E)
//
// Who was asked for needs(P, D) by P has all rows that needs(P, E) may find, while to
// ask by both columns would begin a derivation of its own for each P and E. The atom
// before may also stand in the rules that ask for the clause's head, if it does in all
// of them.

// cover tells that all rows of a pattern with the values terms in its bound columns
// are there.
type cover struct {
	pattern pattern
	terms   []operand
	from    *covering // what tells so, nil if the body itself does
}

// covering is a cover that all rules have that ask for a pattern, as far as is known.
// Its registers are the columns of the demand.
type covering struct {
	cover
	of      pattern
	used    bool
	refuted bool // a rule asks that has it not
	relies  []*covering
}

const (
	coversMax = 16 // kept of one demand
	// refutedMax bounds how often a program is rewritten again because a cover that
	// was used turned out to be none; after that the body alone counts.
	refutedMax = 8
)

// refutations are the covers that were used and are none, over all attempts.
type refutations struct {
	keys  map[string]bool
	count int
}

func (r *refutations) key(of pattern, c cover) string {
	return fmt.Sprint(of, c.pattern, c.terms)
}

// has reports whether a cover cannot be relied on.
func (r *refutations) has(of pattern, c cover) bool {
	return r.count > refutedMax || len(r.keys) > 0 && r.keys[r.key(of, c)]
}

// use notes that the rules rely on a covering and what it relies on.
func (t *transformer) use(c *covering) {
	if c == nil || c.used {
		return
	}
	c.used = true
	if c.refuted {
		t.refute(c)
	}
	for _, other := range c.relies {
		t.use(other)
	}
}

// refute notes that a covering is none; if it was used, the program has to be
// rewritten again.
func (t *transformer) refute(c *covering) {
	c.refuted = true
	if c.used {
		t.refuted = true
		t.refutations.keys[t.refutations.key(c.of, c.cover)] = true
	}
}

// covers returns what covers atoms at this place of the body.
func (w *rewriter) covers() []cover {
	var out []cover
	for _, a := range w.literals {
		if p, ok := w.derived[a.predicate]; ok && !a.negated {
			out = append(out, cover{pattern: p, terms: boundTerms(a.terms, p.bound)})
		}
	}
	return append(out, w.before...)
}

// covered returns the predicate whose rows cover an atom at this place, or nil.
func (w *rewriter) covered(p pattern, terms []operand) *predicate {
	for _, c := range w.covers() {
		if c.pattern.relation == p.relation &&
			slices.Equal(boundTerms(terms, c.pattern.bound), c.terms) {
			w.use(c.from)
			return w.patterns[c.pattern].rows
		}
	}
	return nil
}

// project returns those of the covers that the values in the columns of an atom
// decide, with its columns as registers.
func project(covers []cover, columns []operand) []cover {
	var out []cover
next:
	for _, c := range covers {
		terms := slices.Clone(c.terms)
		for i, o := range terms {
			if o.register == constant {
				continue
			}
			at := slices.Index(columns, o)
			if at < 0 {
				continue next
			}
			terms[i] = operand{register: at}
		}
		out = append(out, cover{c.pattern, terms, c.from})
	}
	return out
}

// asks notes that a rule asks for a pattern, and what covers atoms where that rule
// holds; terms are those of the demand.
func (w *rewriter) asks(p pattern, terms []operand, covers []cover) {
	components := w.prepared.components
	var below []cover // the others are of no use to the pattern's rules
	for _, c := range covers {
		if components[c.pattern.relation] <= components[p.relation] {
			below = append(below, c)
		}
	}
	covers = project(below, terms)
	known, ok := w.coverings[p]
	if !ok {
		for _, c := range covers {
			if len(known) < coversMax && !w.refutations.has(p, c) {
				known = append(known, &covering{cover: c, of: p})
			}
		}
		w.coverings[p] = known
	}
	for _, k := range known {
		at := slices.IndexFunc(covers, func(c cover) bool {
			return c.pattern == k.pattern && slices.Equal(c.terms, k.terms)
		})
		switch {
		case k.refuted:
		case at < 0:
			w.refute(k)
		case covers[at].from != nil:
			k.relies = append(k.relies, covers[at].from)
			if k.used {
				w.use(covers[at].from)
			}
		}
	}
}

// givenTo returns what covers the atoms of a clause of a pattern before its body
// begins; demand has the head's terms.
func (t *transformer) givenTo(p pattern, demand []operand) []cover {
	out := []cover{{pattern: p, terms: demand}}
	for _, k := range t.coverings[p] {
		if k.refuted {
			continue
		}
		terms := slices.Clone(k.terms)
		for i, o := range terms {
			if o.register != constant {
				terms[i] = demand[o.register]
			}
		}
		out = append(out, cover{k.pattern, terms, k})
	}
	return out
}
