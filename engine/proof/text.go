package proof

import (
	"fmt"
	"strings"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
)

var operators = [...]string{
	analysis.Eq: "=", analysis.Ne: "!=", analysis.Lt: "<", analysis.Le: "<=", analysis.Gt: ">",
	analysis.Ge: ">=",
}

// textOrder lists the conditions of a body as texts show them.
func textOrder(b *analysis.Body) []Literal {
	var out []Literal
	for i := range b.Atoms {
		out = append(out, Literal{Atom, i})
	}
	for i := range b.Computations {
		out = append(out, Literal{Computation, i})
	}
	for i := range b.Comparisons {
		out = append(out, Literal{Comparison, i})
	}
	for i := range b.Negations {
		out = append(out, Literal{Negation, i})
	}
	return out
}

// literalText spells a condition with the values of its variables.
func literalText(p *analysis.Program, b *analysis.Body, l Literal, values []value.Value) string {
	term := func(t analysis.Term) string {
		v := evaluate(t, values)
		if v.Kind() == value.Invalid && b.Variables[t.Var].Name != "" {
			return b.Variables[t.Var].Name
		}
		return valueText(v)
	}
	switch l.Kind {
	case Atom:
		return atomText(p, b, b.Atoms[l.Index], values)
	case Negation:
		return "!" + atomText(p, b, b.Negations[l.Index], values)
	case Comparison:
		c := b.Comparisons[l.Index]
		return term(c.Left) + " " + operators[c.Op] + " " + term(c.Right)
	}
	c := b.Computations[l.Index]
	args := make([]string, len(c.Args))
	for i, t := range c.Args {
		args[i] = term(t)
	}
	text := c.Function.Name + "(" + strings.Join(args, ", ") + ")"
	if strings.Contains("+-*/%", c.Function.Name) {
		text = strings.Join(args, " "+c.Function.Name+" ")
	}
	if v := values[c.Out]; v.Kind() != value.Invalid {
		text += " = " + valueText(v)
	}
	return text
}

// atomText spells an atom with the values of its variables, and the names of those
// that have none.
func atomText(p *analysis.Program, b *analysis.Body, a analysis.Atom, values []value.Value) string {
	texts := make([]string, len(a.Terms))
	for i, t := range a.Terms {
		v := evaluate(t, values)
		if texts[i] = valueText(v); v.Kind() == value.Invalid && b.Variables[t.Var].Name != "" {
			texts[i] = b.Variables[t.Var].Name
		}
	}
	return p.Relations[a.Relation].Name + "(" + strings.Join(texts, ", ") + ")"
}

// writer writes a tree.
type writer struct {
	strings.Builder
	shown map[int]bool
}

// branch writes a line and returns the indent of what belongs under it.
func (w *writer) branch(indent string, last bool, text string) string {
	mark, under := "├ ", "│ "
	if last {
		mark, under = "└ ", "  "
	}
	w.WriteString(indent + mark + text + "\n")
	return indent + under
}

// String returns the proof as trees for people. What is needed twice is shown once.
func (p *Proof) String() string {
	w := &writer{shown: map[int]bool{}}
	if len(p.Roots) == 0 {
		fmt.Fprintf(w, "?%s has no row\n", strings.TrimPrefix(p.Query, "?"))
	}
	for i, at := range p.Roots {
		if i > 0 {
			w.WriteByte('\n')
		}
		n := &p.Nodes[at]
		w.WriteString(rowText(n.Row.Values, p) + "\n")
		p.under(w, n, "")
	}
	if more := p.Rows - len(p.Roots); more > 0 && len(p.Roots) > 0 {
		fmt.Fprintf(w, "\nand %s\n", counted(more, "more row"))
	}
	writeCut(w, p.Cut)
	return w.String()
}

// rowText spells a row of the query: who = "ann", P = "bob".
func rowText(row []value.Value, p *Proof) string {
	if len(row) == 0 {
		return p.Query + " holds"
	}
	var texts []string
	for i, v := range row {
		texts = append(texts, p.Columns[i].Name+" = "+valueText(v))
	}
	return strings.Join(texts, ", ")
}

func writeCut(w *writer, c Cut) {
	switch c {
	case CutNodes:
		w.WriteString("\nsomething is left out: the explanation has as many rows as it may\n")
	case CutSteps:
		w.WriteString("\nsomething is left out: it would have taken too long to find\n")
	case CutBytes:
		w.WriteString("\nsomething is left out: the values are too long\n")
	case CutLevels:
		w.WriteString("\nsomething is left out: it lies deeper than was asked for\n")
	}
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	plural := "s"
	if strings.HasSuffix(what, "ch") {
		plural = "es"
	}
	return fmt.Sprintf("%d %s%s", n, what, plural)
}

// node writes a row and why it holds.
func (p *Proof) node(w *writer, at int, indent string, last bool) {
	n := &p.Nodes[at]
	switch {
	case n.Fact:
		w.branch(indent, last, n.Row.String()+"  fact")
		return
	case w.shown[at]:
		w.branch(indent, last, n.Row.String()+"  as shown above")
		return
	}
	w.shown[at] = true
	p.under(w, n, w.branch(indent, last, n.Row.String()+"  "+n.Clause.place()))
}

// place says where a rule stands.
func (c Clause) place() string {
	switch {
	case c.Rule < 0 || c.Text == "":
		return ""
	case c.Pos.Line == 0:
		return "by " + c.Text
	}
	return fmt.Sprintf("by line %d: %s", c.Pos.Line, c.Text)
}

// under writes why a node's row holds.
func (p *Proof) under(w *writer, n *Node, indent string) {
	if n.Cut && n.Matches == 0 {
		w.branch(indent, true, "… left out")
		return
	}
	if n.Matches == 0 {
		p.reasons(w, n.Because, indent, true)
		return
	}
	for i, m := range n.Shown {
		last := i == len(n.Shown)-1 && n.Matches == len(n.Shown) && !n.AtLeast
		below := w.branch(indent, last, fmt.Sprintf("match %d of %s", i+1, n.count()))
		p.reasons(w, m.Because, below, true)
	}
	if n.AtLeast || n.Matches > len(n.Shown) {
		w.branch(indent, true, fmt.Sprintf("and %s", counted(n.Matches-len(n.Shown), "more match")))
	}
}

func (n *Node) count() string {
	if n.AtLeast {
		return fmt.Sprintf("%d or more", n.Matches)
	}
	return fmt.Sprint(n.Matches)
}

func (p *Proof) reasons(w *writer, reasons []Reason, indent string, end bool) {
	for i, r := range reasons {
		last := end && i == len(reasons)-1
		switch {
		case r.Kind == Atom && r.Node >= 0:
			p.node(w, r.Node, indent, last)
		case r.Kind == Negation:
			w.branch(indent, last, r.Text+"  no such row")
		default:
			w.branch(indent, last, r.Text)
		}
	}
}

// String returns the absence as a tree for people. What is missing twice is shown
// once.
func (a *Absence) String() string {
	w := &writer{shown: map[int]bool{}}
	switch {
	case a.Rows > 0:
		fmt.Fprintf(w, "%s has %s\n", a.Query, counted(a.Rows, "row"))
	case a.Beyond > 0:
		fmt.Fprintf(w, "%s: its limit and offset leave out the %s that it has\n", a.Query,
			counted(a.Beyond, "row"))
	default:
		w.WriteString(a.Query + " has no row\n")
		a.failures(w, &a.Absent[0], "")
	}
	writeCut(w, a.Cut)
	return w.String()
}

// failures writes why what is absent is.
func (a *Absence) failures(w *writer, n *Absent, indent string) {
	if n.Cut {
		w.branch(indent, true, "… left out")
		return
	}
	if len(n.Failures) == 0 {
		w.branch(indent, true, "no rule gives such rows")
	}
	for i := range n.Failures {
		f := &n.Failures[i]
		last, below := i == len(n.Failures)-1, indent
		if f.Clause.Rule >= 0 {
			below = w.branch(indent, last, strings.TrimPrefix(f.Clause.place(), "by "))
		}
		for _, r := range f.First.Because {
			w.branch(below, false, r.Text+"  holds")
		}
		switch {
		case f.Matches <= 1:
		case f.Kind == FailCondition || f.Kind == FailComputed:
			w.branch(below, false,
				fmt.Sprintf("that is the first of %d matches so far; none goes on", f.Matches))
		default:
			w.branch(below, false, fmt.Sprintf("that is the first of %d matches", f.Matches))
		}
		if f.Node < 0 {
			w.branch(below, true, f.Text)
			continue
		}
		if w.shown[f.Node] {
			w.branch(below, true, f.Text+", as shown above")
			continue
		}
		w.shown[f.Node] = true
		a.failures(w, &a.Absent[f.Node], w.branch(below, true, f.Text))
	}
}
