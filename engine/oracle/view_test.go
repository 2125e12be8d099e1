package oracle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/heddle-live/heddle/engine/value"
)

// view makes a view with up to three parameters and up to three parts.
func (g *generator) view() view {
	v := view{name: fmt.Sprintf("v%d", g.views)}
	g.views++
	parts := 1
	if g.in(4) {
		parts = 2 + g.IntN(2)
		g.tag("named parts")
	}
	for range 1 + g.IntN(3) {
		v.params = append(v.params, param{fmt.Sprintf("p%d", len(v.params)), 0})
	}
	for i := range parts {
		p := g.part(v.params)
		if parts > 1 {
			p.name = fmt.Sprintf("part%d", i)
		}
		v.parts = append(v.parts, p)
	}
	if len(v.params) > 1 {
		g.tag("several parameters")
	}
	return v
}

// part makes a query that uses every parameter. The first part that uses one
// settles its kind.
func (g *generator) part(params []param) part {
	b := &body{g: g}
	from := g.readable(nil, true)
	relations := []*relation{pick(g, from)}
	if len(g.derived) > 0 && g.in(2) {
		relations[0] = pick(g, g.derived)
	}
	for g.in(3) {
		relations = append(relations, pick(g, from))
	}
	atoms := make([][]string, len(relations))
	for i, r := range relations {
		text := b.newAtom(r)
		atoms[i] = strings.Split(strings.TrimSuffix(text[len(r.name)+1:], ")"), ", ")
	}
	output := slices.Clone(b.vars)
	for i := range params {
		g.place(b, &params[i], relations, atoms)
	}
	if g.in(4) {
		b.negation(pick(g, from))
	}
	if g.in(4) {
		b.comparison()
	}
	if g.in(5) {
		b.computation()
	}
	out := part{}
	for i, r := range relations {
		text := r.name + "(" + strings.Join(atoms[i], ", ") + ")"
		if i == 0 {
			out.goal = text
			continue
		}
		out.body = append(out.body, text)
	}
	out.body = append(out.body, b.literals...)
	if g.in(4) {
		out.tail = g.window(out.goal, output)
	}
	return out
}

// place puts a parameter into a query.
func (g *generator) place(b *body, p *param, relations []*relation, atoms [][]string) {
	name := "$" + p.name
	type cell struct{ atom, column int }
	var cells []cell
	for i, r := range relations {
		for j, c := range r.columns {
			if !strings.HasPrefix(atoms[i][j], "$") && (p.kind == 0 || p.kind == c.kind) {
				cells = append(cells, cell{i, j})
			}
		}
	}
	for _, n := range g.Perm(6) {
		switch {
		case n < 3 && len(cells) > 0:
			at := pick(g, cells)
			p.kind = relations[at.atom].columns[at.column].kind
			// A variable that stands elsewhere, too, must stay bound.
			if old := atoms[at.atom][at.column]; old != "_" && old[0] >= 'A' && old[0] <= 'Z' {
				b.add("%s = %s", old, name)
				g.tag("parameter by equality")
				return
			}
			atoms[at.atom][at.column] = name
			return
		case n == 3 && len(b.vars) > 0 && (p.kind == 0 || len(b.bound(p.kind)) > 0):
			v := pick(g, b.vars)
			if p.kind != 0 {
				v.name = pick(g, b.bound(p.kind))
			} else {
				p.kind = v.kind
			}
			g.tag("parameter in a comparison")
			b.add("%s %s %s", v.name, pick(g, []string{"<", "<=", ">", ">=", "!="}), name)
			return
		case n == 4:
			if g.underNegation(b, p) {
				return
			}
		}
	}
	if p.kind == 0 {
		p.kind = value.Int
	}
	b.add("%s != %s", name, b.constant(column{kind: p.kind}))
}

// underNegation uses a parameter in a negation only.
func (g *generator) underNegation(b *body, p *param) bool {
	r := pick(g, g.readable(nil, true))
	at := slices.IndexFunc(r.columns, func(c column) bool { return p.kind == 0 || p.kind == c.kind })
	if at < 0 {
		return false
	}
	p.kind = r.columns[at].kind
	terms := make([]string, len(r.columns))
	for i, c := range r.columns {
		bound := b.bound(c.kind)
		switch {
		case i == at:
			terms[i] = "$" + p.name
		case len(bound) > 0 && g.IntN(3) > 0:
			terms[i] = pick(g, bound)
		default:
			terms[i] = "_"
		}
	}
	g.tag("parameter under negation")
	b.add("!%s(%s)", r.name, strings.Join(terms, ", "))
	return true
}

// window orders by variables that the goal outputs, and limits.
func (g *generator) window(goal string, vars []variable) string {
	var order []string
	for _, v := range vars {
		named := strings.Contains(goal, "("+v.name) || strings.Contains(goal, " "+v.name)
		if named && g.in(2) {
			order = append(order, v.name+pick(g, []string{"", " desc", " asc"}))
		}
	}
	text := ""
	if len(order) > 0 {
		g.tag("order by")
		text = "order by " + strings.Join(order, ", ") + " "
	}
	g.tag("limit")
	text += fmt.Sprintf("limit %d", 1+g.IntN(4))
	if g.in(2) {
		g.tag("offset")
		text += fmt.Sprintf(" offset %d", 1+g.IntN(3))
	}
	return text
}
