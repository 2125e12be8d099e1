package engine

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
)

// generator makes random programs and rows over small domains, so that joins meet,
// derivations multiply and recursion closes.
type generator struct {
	*rand.Rand
}

var (
	domainInts    = []int64{0, 1, 2, 3, -1} // -1 lives in the dictionary
	domainStrings = []string{"a", "b", "c"}
)

func (g generator) value(k value.Kind) value.Value {
	if k == value.String {
		return value.OfString(domainStrings[g.IntN(len(domainStrings))])
	}
	return value.OfInt(domainInts[g.IntN(len(domainInts))])
}

func (g generator) row(columns []analysis.Column) []value.Value {
	row := make([]value.Value, len(columns))
	for i, c := range columns {
		row[i] = g.value(c.Type)
	}
	return row
}

func (g generator) kind() value.Kind {
	if g.IntN(5) == 0 {
		return value.String
	}
	return value.Int
}

func (g generator) columns(n int) []analysis.Column {
	out := make([]analysis.Column, n)
	for i := range out {
		out[i] = analysis.Column{Name: fmt.Sprintf("c%d", i), Type: g.kind()}
	}
	return out
}

// baseRelations are the same for a whole run, so that rows survive deploys.
func (g generator) baseRelations() []analysis.Relation {
	out := []analysis.Relation{}
	for i := range 4 {
		arity := 1 + g.IntN(2) + g.IntN(6)/5
		out = append(out, analysis.Relation{Name: fmt.Sprintf("b%d", i), Columns: g.columns(arity)})
	}
	return out
}

// program makes derived relations, rules and views over the base relations.
func (g generator) program(bases []analysis.Relation, views []analysis.View) *analysis.Program {
	p := &analysis.Program{}
	p.Relations = append(p.Relations, bases...)
	g.Shuffle(len(p.Relations), func(i, j int) {
		p.Relations[i], p.Relations[j] = p.Relations[j], p.Relations[i]
	})
	first := len(p.Relations)
	for i := range 1 + g.IntN(4) {
		arity := 1 + g.IntN(2) + g.IntN(8)/7
		p.Relations = append(p.Relations, analysis.Relation{
			Name: fmt.Sprintf("d%d", i), Columns: g.columns(arity), Derived: true,
		})
	}
	for i := first; i < len(p.Relations); i++ {
		for range 1 + g.IntN(3) {
			p.Rules = append(p.Rules, g.rule(p, analysis.RelationID(i)))
		}
	}
	for i := range 2 + g.IntN(3) {
		v := analysis.View{Name: fmt.Sprintf("v%d", i), Parts: make([]analysis.Part, 1)}
		q := v.Query()
		if i < len(views) && g.IntN(3) > 0 { // a view whose keys survive
			q.Parameters = views[i].Parameters
			g.query(p, q, views[i].Query().Columns)
		} else {
			q.Parameters = g.columns(g.IntN(3))
			g.query(p, q, nil)
		}
		v.Parameters = q.Parameters
		v.Text = spellQuery(p, q)
		p.Views = append(p.Views, v)
	}
	return p
}

func (g generator) rule(p *analysis.Program, head analysis.RelationID) analysis.Rule {
	r := analysis.Rule{Head: analysis.Atom{Relation: head}}
	g.body(p, &r.Body, 1+g.IntN(3))
	for _, c := range p.Relations[head].Columns {
		r.Head.Terms = append(r.Head.Terms, g.boundTerm(&r.Body, c.Type, 8))
	}
	r.Text = fmt.Sprint(spellAtom(p, &r.Body, r.Head), " <- ", spellBody(p, &r.Body))
	return r
}

// body adds atoms over a few variables of each kind, then comparisons.
func (g generator) body(p *analysis.Program, b *analysis.Body, atoms int) {
	for range 3 {
		b.Variables = append(b.Variables, analysis.Variable{Name: "X", Type: value.Int})
	}
	b.Variables = append(b.Variables, analysis.Variable{Name: "S", Type: value.String})
	for range atoms {
		id := analysis.RelationID(g.IntN(len(p.Relations)))
		at := analysis.Atom{Relation: id}
		for _, c := range p.Relations[id].Columns {
			at.Terms = append(at.Terms, g.atomTerm(b, c.Type))
		}
		b.Atoms = append(b.Atoms, at)
	}
	for g.IntN(3) == 0 {
		k := g.kind()
		b.Comparisons = append(b.Comparisons, analysis.Comparison{
			Op:   analysis.Operator(g.IntN(int(analysis.Ge) + 1)),
			Left: g.boundTerm(b, k, 6), Right: g.boundTerm(b, k, 3),
		})
	}
}

func (g generator) atomTerm(b *analysis.Body, k value.Kind) analysis.Term {
	switch g.IntN(9) {
	case 0:
		return analysis.ConstTerm(g.value(k))
	case 1:
		b.Variables = append(b.Variables, analysis.Variable{Type: k})
		return analysis.Term{Var: len(b.Variables) - 1}
	}
	for {
		v := g.IntN(len(b.Variables))
		if b.Variables[v].Type == k && b.Variables[v].Name != "" {
			return analysis.Term{Var: v}
		}
	}
}

// boundTerm returns a variable that an atom or parameter binds, or a constant:
// always one in rarity, and where there is no such variable.
func (g generator) boundTerm(b *analysis.Body, k value.Kind, rarity int) analysis.Term {
	var bound []analysis.Term
	for v, variable := range b.Variables {
		if variable.Type == k && variable.Name == "P" {
			bound = append(bound, analysis.Term{Var: v})
		}
	}
	for _, at := range b.Atoms {
		for _, t := range at.Terms {
			if !t.IsConst() && b.Variables[t.Var].Type == k && b.Variables[t.Var].Name != "" {
				bound = append(bound, t)
			}
		}
	}
	if len(bound) == 0 || g.IntN(rarity) == 0 {
		return analysis.ConstTerm(g.value(k))
	}
	return bound[g.IntN(len(bound))]
}

// query fills a query whose parameters are set; with columns, of these types.
func (g generator) query(p *analysis.Program, q *analysis.Query, columns []analysis.Column) {
	for _, c := range q.Parameters {
		q.Body.Variables = append(q.Body.Variables, analysis.Variable{Name: "P", Type: c.Type})
	}
	g.body(p, &q.Body, 1+g.IntN(2))
	if columns == nil {
		columns = g.columns(1 + g.IntN(3))
	}
	q.Columns = columns
	for _, c := range columns {
		q.Output = append(q.Output, g.boundTerm(&q.Body, c.Type, 8))
	}
}

func spellTerm(b *analysis.Body, t analysis.Term) string {
	if t.IsConst() {
		return t.Const.String()
	}
	return fmt.Sprintf("%s%d", b.Variables[t.Var].Name, t.Var)
}

func spellTerms(b *analysis.Body, terms []analysis.Term) string {
	var out []string
	for _, t := range terms {
		out = append(out, spellTerm(b, t))
	}
	return "(" + strings.Join(out, ", ") + ")"
}

func spellAtom(p *analysis.Program, b *analysis.Body, a analysis.Atom) string {
	return p.Relations[a.Relation].Name + spellTerms(b, a.Terms)
}

func spellBody(p *analysis.Program, b *analysis.Body) string {
	var out []string
	for _, a := range b.Atoms {
		out = append(out, spellAtom(p, b, a))
	}
	for _, c := range b.Comparisons {
		op := []string{"=", "!=", "<", "<=", ">", ">="}[c.Op]
		out = append(out, spellTerm(b, c.Left)+" "+op+" "+spellTerm(b, c.Right))
	}
	return strings.Join(out, ", ")
}

func spellQuery(p *analysis.Program, q *analysis.Query) string {
	return fmt.Sprintf("%v -> %s := %s", q.Parameters, spellTerms(&q.Body, q.Output),
		spellBody(p, &q.Body))
}

func spellProgram(p *analysis.Program) string {
	var out strings.Builder
	for _, r := range p.Relations {
		fmt.Fprintf(&out, "+%s%v\n", r.Name, r.Columns)
	}
	for _, r := range p.Rules {
		fmt.Fprintln(&out, r.Text)
	}
	for _, v := range p.Views {
		fmt.Fprintln(&out, v.Name, v.Text)
	}
	return out.String()
}
