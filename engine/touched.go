package engine

import (
	"slices"
	"strings"

	"github.com/heddle-live/heddle/engine/analysis"
)

// touchedViews returns the views that both programs declare alike and that read,
// directly or through rules, something that differs.
func touchedViews(old, next *analysis.Program) []string {
	before, after := newReading(old), newReading(next)
	var touched []string
	for i := range next.Views {
		v := &next.Views[i]
		o := old.ViewNamed(v.Name)
		if o != nil && survives(o, v) && sameTexts(o, v) &&
			!slices.Equal(before.of(o), after.of(v)) {
			touched = append(touched, v.Name)
		}
	}
	return touched
}

// reading finds what views read.
type reading struct {
	program *analysis.Program
	rules   [][]int // by the relation that they define
}

func newReading(p *analysis.Program) *reading {
	r := &reading{program: p, rules: make([][]int, len(p.Relations))}
	for i := range p.Rules {
		id := p.Rules[i].Head.Relation
		r.rules[id] = append(r.rules[id], i)
	}
	return r
}

// of returns the relations of facts and the clauses that a view reads, as texts in
// order.
func (r *reading) of(v *analysis.View) []string {
	seen := make([]bool, len(r.program.Relations))
	var texts []string
	var read func(b *analysis.Body)
	visit := func(id analysis.RelationID) {
		if seen[id] {
			return
		}
		seen[id] = true
		relation := &r.program.Relations[id]
		if !relation.Derived {
			var text strings.Builder
			text.WriteString("+" + relation.Name)
			for _, c := range relation.Columns {
				text.WriteString(c.String())
			}
			texts = append(texts, text.String())
		}
		for _, i := range r.rules[id] {
			texts = append(texts, r.program.Rules[i].Text)
			read(&r.program.Rules[i].Body)
		}
	}
	read = func(b *analysis.Body) {
		for i := range b.Atoms {
			visit(b.Atoms[i].Relation)
		}
		for i := range b.Negations {
			visit(b.Negations[i].Relation)
		}
	}
	for i := range v.Parts {
		read(&v.Parts[i].Query.Body)
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}
