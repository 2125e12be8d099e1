package analysis

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/value"
)

// analyser turns one text into IR. It goes in passes, each of which needs the
// one before to be free of faults: names and arities, types, IR.
type analyser struct {
	src     string
	errs    parse.Errors
	program *Program

	viewPos map[string]Position
	rules   []*clause
	views   []*clause
	// component numbers the strongly connected components of relations.
	component []int
	// origins are the places of the head terms that gave the columns of derived
	// relations their types.
	origins [][]Position
}

// Analyse checks a parsed program and returns its IR. src is the text that f
// was parsed from, of which the errors quote lines. The error is of type
// parse.Errors; the program is nil then.
func Analyse(f *parse.File, src string) (*Program, error) {
	a := newAnalyser(&Program{Source: src, names: map[string]RelationID{}}, src)
	for _, pass := range []func(*parse.File){
		a.resolve, a.checkStrata, a.inferTypes, a.checkTypes, a.checkTermination, a.emit,
	} {
		pass(f)
		if err := a.err(); err != nil {
			return nil, err
		}
	}
	return a.program, nil
}

func newAnalyser(p *Program, src string) *analyser {
	a := &analyser{src: src, program: p, viewPos: map[string]Position{}}
	for i := range p.Views {
		a.viewPos[p.Views[i].Name] = p.Views[i].Pos
	}
	return a
}

// fail reports a fault at pos; hint may be "".
func (a *analyser) fail(pos Position, hint, format string, args ...any) {
	if !a.errs.Full() {
		a.errs.Add(parse.NewError(a.src, pos, hint, fmt.Sprintf(format, args...)))
	}
}

// err returns the errors so far in order of the text, nil if there are none.
func (a *analyser) err() error {
	if len(a.errs) == 0 {
		return nil
	}
	slices.SortStableFunc(a.errs, func(x, y *parse.Error) int {
		return cmp.Or(cmp.Compare(x.Line, y.Line), cmp.Compare(x.Column, y.Column))
	})
	return a.errs
}

// declare makes the relations of schemas and of rule heads, in order of the
// text, and checks that every name means one thing.
func (a *analyser) declare(f *parse.File) {
	a.declareBase(f)
	a.declareDerived(f)
	slices.SortStableFunc(a.program.Relations, func(x, y Relation) int {
		return cmp.Or(cmp.Compare(x.Pos.Line, y.Pos.Line), cmp.Compare(x.Pos.Column, y.Pos.Column))
	})
	for i := range a.program.Relations {
		a.program.names[a.program.Relations[i].Name] = RelationID(i)
	}
	for i := range f.Views {
		a.declareView(&f.Views[i])
	}
}

func (a *analyser) declareBase(f *parse.File) {
	for i := range f.Schemas {
		s := &f.Schemas[i]
		name := s.Relation.Text
		if id, ok := a.program.names[name]; ok {
			a.fail(s.Relation.Pos, "a relation has one schema; remove this one or the other",
				"the schema of %s stands in line %d already",
				name, a.program.Relations[id].Pos.Line)
			continue
		}
		r := Relation{Name: name, Pos: s.Pos}
		for _, c := range s.Columns {
			for _, other := range r.Columns {
				if other.Name == c.Name.Text {
					a.fail(c.Name.Pos, "", "%s has a column %s already", name, c.Name.Text)
				}
			}
			r.Columns = append(r.Columns, Column{Name: c.Name.Text, Type: c.Type})
		}
		a.program.names[name] = RelationID(len(a.program.Relations))
		a.program.Relations = append(a.program.Relations, r)
	}
}

// declareDerived makes a relation of the first clause of each head; its columns
// have no types yet.
func (a *analyser) declareDerived(f *parse.File) {
	for i := range f.Rules {
		head := &f.Rules[i].Head
		name := head.Relation.Text
		if id, ok := a.program.names[name]; ok {
			if r := &a.program.Relations[id]; !r.Derived {
				a.fail(head.Relation.Pos,
					"give the rule's relation another name, or remove the schema",
					"%s holds facts (its schema stands in line %d) and cannot be derived by a rule",
					name, r.Pos.Line)
			}
			continue
		}
		r := Relation{Name: name, Derived: true, Pos: head.Relation.Pos}
		for j, t := range head.Terms {
			c := Column{Name: fmt.Sprintf("column%d", j+1)}
			if t.Kind == parse.Variable {
				c.Name = t.Name
			}
			r.Columns = append(r.Columns, c)
		}
		columnNames(r.Columns)
		a.program.names[name] = RelationID(len(a.program.Relations))
		a.program.Relations = append(a.program.Relations, r)
	}
}

func (a *analyser) declareView(v *parse.View) {
	name := v.Name.Text
	if pos, ok := a.viewPos[name]; ok {
		a.fail(v.Name.Pos, "give one of them another name",
			"there is a view %s in line %d already", name, pos.Line)
		return
	}
	if id, ok := a.program.names[name]; ok {
		a.fail(v.Name.Pos, "views and relations share one namespace; give the view another name",
			"there is a relation %s in line %d already", name, a.program.Relations[id].Pos.Line)
	}
	a.viewPos[name] = v.Pos
	for i, p := range v.Parameters {
		for _, other := range v.Parameters[:i] {
			if other.Name.Text == p.Name.Text {
				a.fail(p.Name.Pos, "", "%s has a parameter $%s already", name, p.Name.Text)
			}
		}
	}
}

// resolve declares all names, looks up those in bodies, checks arities and
// bindings, and makes the seed facts.
func (a *analyser) resolve(f *parse.File) {
	a.declare(f)
	for i := range f.Rules {
		c := newClause(&f.Rules[i].Head, f.Rules[i].Body)
		a.rules = append(a.rules, c)
		a.resolveRule(c)
	}
	for i := range f.Views {
		v := &f.Views[i]
		c := newQueryClause(&v.Query, v.Parameters)
		a.views = append(a.views, c)
		a.resolveClause(c)
		a.checkParameters(c, v)
		a.checkOutput(c)
	}
	for i := range f.Seeds {
		a.facts(&f.Seeds[i], func(row []value.Value) {
			fact := Fact{Relation: f.Seeds[i].Relation.Text, Row: row}
			a.program.Seed = append(a.program.Seed, fact)
		})
	}
}

// emit makes the IR of rules and views.
func (a *analyser) emit(f *parse.File) {
	for i, c := range a.rules {
		e := newEmitter(c, a.program)
		rule := Rule{Pos: c.head.Relation.Pos, Text: f.Rules[i].String()}
		rule.Body = e.body()
		rule.Head = e.atom(a.program.names[c.head.Relation.Text], c.head)
		rule.Aggregates = e.aggregates(c.head)
		rule.Body.Variables = e.variables
		a.program.Rules = append(a.program.Rules, rule)
	}
	for i, c := range a.views {
		v := &f.Views[i]
		q := a.emitQuery(c)
		a.program.Views = append(a.program.Views, View{
			Name: v.Name.Text, Parameters: q.Parameters, Parts: []Part{{Query: q}},
			Pos: v.Pos, Text: v.String(),
		})
	}
}
