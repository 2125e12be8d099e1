package engine

import (
	"fmt"
	"strings"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
)

// builder makes programs by hand. Terms are int (constants), strings with an
// upper-case first letter (variables), "_", and "=text" (string constants).
type builder struct {
	analysis.Program
}

// base declares a base relation; a column "name:string" has that type, others int.
func (b *builder) base(name string, columns ...string) *builder {
	return b.relation(name, false, columns)
}

func (b *builder) derived(name string, columns ...string) *builder {
	return b.relation(name, true, columns)
}

func (b *builder) relation(name string, isDerived bool, columns []string) *builder {
	b.Relations = append(b.Relations, analysis.Relation{
		Name: name, Columns: columnsOf(columns), Derived: isDerived,
	})
	return b
}

func columnsOf(specs []string) []analysis.Column {
	var out []analysis.Column
	for _, spec := range specs {
		name, kind, ok := strings.Cut(spec, ":")
		c := analysis.Column{Name: name, Type: value.Int}
		if ok {
			c.Type, _ = value.KindOf(kind)
		}
		out = append(out, c)
	}
	return out
}

// lit is an atom or, with an operator for a name, a comparison.
type lit struct {
	name  string
	terms []any
}

func a(name string, terms ...any) lit { return lit{name, terms} }

// scope numbers the variables of a body.
type scope struct {
	b     *builder
	names map[string]int
	body  analysis.Body
}

func (s *scope) term(t any, kind value.Kind) analysis.Term {
	switch t := t.(type) {
	case int:
		return analysis.ConstTerm(value.OfInt(int64(t)))
	case string:
		if text, ok := strings.CutPrefix(t, "="); ok {
			return analysis.ConstTerm(value.OfString(text))
		}
		at, ok := s.names[t]
		if !ok || t == "_" {
			at = len(s.body.Variables)
			s.names[t] = at
			s.body.Variables = append(s.body.Variables, analysis.Variable{Name: t, Type: kind})
		}
		return analysis.Term{Var: at}
	}
	panic(fmt.Sprint("term ", t))
}

var operators = map[string]analysis.Comparison{
	"=": {Op: analysis.Eq}, "!=": {Op: analysis.Ne}, "<": {Op: analysis.Lt},
	"<=": {Op: analysis.Le}, ">": {Op: analysis.Gt}, ">=": {Op: analysis.Ge},
}

func (s *scope) atom(l lit) analysis.Atom {
	id, ok := s.b.RelationNamed(l.name)
	if !ok {
		panic("no relation " + l.name)
	}
	out := analysis.Atom{Relation: id}
	for i, t := range l.terms {
		out.Terms = append(out.Terms, s.term(t, s.b.Relations[id].Columns[i].Type))
	}
	return out
}

func (s *scope) add(body []lit) {
	for _, l := range body {
		if c, ok := operators[l.name]; ok {
			c.Left = s.term(l.terms[0], value.Int)
			c.Right = s.term(l.terms[1], value.Int)
			s.body.Comparisons = append(s.body.Comparisons, c)
			continue
		}
		s.body.Atoms = append(s.body.Atoms, s.atom(l))
	}
}

func (b *builder) rule(head lit, body ...lit) *builder {
	s := &scope{b: b, names: map[string]int{}}
	s.add(body)
	h := s.atom(head)
	b.Rules = append(b.Rules, analysis.Rule{
		Head: h, Body: s.body, Text: fmt.Sprint(head, " <- ", body),
	})
	return b
}

// query makes a query; parameters are variables "P:type".
func (b *builder) query(parameters, output []string, body ...lit) *analysis.Query {
	s := &scope{b: b, names: map[string]int{}}
	q := &analysis.Query{Parameters: columnsOf(parameters), Text: fmt.Sprint(body)}
	for _, p := range q.Parameters {
		s.term(p.Name, p.Type)
	}
	s.add(body)
	q.Body = s.body
	for _, o := range output {
		t := s.term(o, value.Int)
		kind := t.Const.Kind()
		if !t.IsConst() {
			kind = s.body.Variables[t.Var].Type
		}
		q.Output = append(q.Output, t)
		q.Columns = append(q.Columns, analysis.Column{Name: o, Type: kind})
	}
	return q
}

func (b *builder) view(name string, parameters, output []string, body ...lit) *builder {
	q := b.query(parameters, output, body...)
	b.Views = append(b.Views, analysis.View{
		Name: name, Parameters: q.Parameters, Parts: []analysis.Part{{Query: *q}}, Text: fmt.Sprint(name, parameters, output, body),
	})
	return b
}

func (b *builder) program() *analysis.Program { p := b.Program; return &p }

// vals makes a row of ints and strings.
func vals(cells ...any) []value.Value {
	row := []value.Value{}
	for _, c := range cells {
		switch c := c.(type) {
		case int:
			row = append(row, value.OfInt(int64(c)))
		case string:
			row = append(row, value.OfString(c))
		case float64:
			v, _ := value.OfFloat(c)
			row = append(row, v)
		default:
			panic(fmt.Sprint("cell ", c))
		}
	}
	return row
}

func ins(relation string, cells ...any) analysis.Op {
	return analysis.Op{Relation: relation, Row: vals(cells...)}
}

func del(relation string, cells ...any) analysis.Op {
	return analysis.Op{Relation: relation, Row: vals(cells...), Delete: true}
}

// hotProgram is the family of most tests and benchmarks.
func hotProgram() *builder {
	b := (&builder{}).base("edge", "src", "dst").base("label", "node", "text:string").
		derived("r1", "x", "y")
	b.rule(a("r1", "X", "Y"), a("edge", "X", "Y"), a("label", "X", "=hot"))
	return b.view("hot", []string{"H"}, []string{"H", "Y"}, a("r1", "H", "Y"))
}
