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

	leaves map[string]leaf
	rules  []*clause
	views  []viewPart
	writes []actionStep
	// component numbers the strongly connected components of relations.
	component []int
	// An int literal of a head may be a timestamp, so it gives a column its type only
	// where nothing else does: intLiterals then, when one waits for that.
	intLiterals, intWaits bool
	// stored is set for a program that was accepted before.
	stored bool
	// origins are the places of the head terms that gave the columns of derived
	// relations their types.
	origins [][]Position
}

// leaf is a view or an action.
type leaf struct {
	what string // "a view"
	pos  Position
}

// viewPart is a part of a view under analysis.
type viewPart struct {
	view int
	name string
	c    *clause
}

// actionStep is a statement of an action under analysis.
type actionStep struct {
	action int
	w      *write
}

// Analyse checks a parsed program and returns its IR. src is the text that f
// was parsed from, of which the errors quote lines. The error is of type
// parse.Errors; the program is nil then.
func Analyse(f *parse.File, src string) (*Program, error) {
	return analyseAs(f, src, false)
}

// AnalyseStored is Analyse for a program that was accepted before, perhaps by a
// version that refused less. It takes what has a meaning though it is refused now:
// recursion that may compute ever new values, and comparisons that never hold.
func AnalyseStored(f *parse.File, src string) (*Program, error) {
	return analyseAs(f, src, true)
}

func analyseAs(f *parse.File, src string, stored bool) (*Program, error) {
	a := newAnalyser(&Program{Source: src, names: map[string]RelationID{}}, src)
	a.stored = stored
	for _, pass := range []func(*parse.File){
		a.resolve, a.checkStrata, a.inferTypes, a.inferNulls, a.checkTypes, a.checkTermination,
		a.emit,
	} {
		pass(f)
		if err := a.err(); err != nil {
			return nil, err
		}
	}
	return a.program, nil
}

func newAnalyser(p *Program, src string) *analyser {
	a := &analyser{src: src, program: p, leaves: map[string]leaf{}}
	for i := range p.Views {
		a.leaves[p.Views[i].Name] = leaf{"a view", p.Views[i].Pos}
	}
	for i := range p.Actions {
		a.leaves[p.Actions[i].Name] = leaf{"an action", p.Actions[i].Pos}
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
	a.checkRenamed(f)
	slices.SortStableFunc(a.program.Relations, func(x, y Relation) int {
		return cmp.Or(cmp.Compare(x.Pos.Line, y.Pos.Line), cmp.Compare(x.Pos.Column, y.Pos.Column))
	})
	for i := range a.program.Relations {
		a.program.names[a.program.Relations[i].Name] = RelationID(i)
	}
	for i := range f.Views {
		v := &f.Views[i]
		a.declareLeaf("a view", v.Name, v.Pos, v.Parameters)
		a.declareParts(v)
	}
	for i := range f.Actions {
		act := &f.Actions[i]
		a.declareLeaf("an action", act.Name, act.Pos, act.Parameters)
	}
}

// clockName is the relation that a clock declares.
const clockName = "clock"

func (a *analyser) declareBase(f *parse.File) {
	if f.Clock != nil {
		a.program.ClockMillis = f.Clock.Millis
		a.program.names[clockName] = 0
		a.program.Relations = append(a.program.Relations, Relation{
			Name: clockName, Pos: f.Clock.Pos,
			Columns: []Column{{Name: "second", Type: value.Timestamp}},
		})
	}
	for i := range f.Schemas {
		s := &f.Schemas[i]
		name := s.Relation.Text
		if id, ok := a.program.names[name]; ok {
			a.fail(s.Relation.Pos, "a relation has one schema; remove this one or the other",
				"the schema of %s stands in line %d already",
				name, a.program.Relations[id].Pos.Line)
			continue
		}
		r := Relation{Name: name, Was: s.Was.Text, Pos: s.Pos}
		for _, c := range s.Columns {
			for _, other := range r.Columns {
				if other.Name == c.Name.Text {
					a.fail(c.Name.Pos, "", "%s has a column %s already", name, c.Name.Text)
				}
			}
			r.Columns = append(r.Columns, Column{
				Name: c.Name.Text, Type: c.Type, Nullable: c.Nullable,
			})
		}
		a.program.names[name] = RelationID(len(a.program.Relations))
		a.program.Relations = append(a.program.Relations, r)
	}
}

// checkRenamed checks that each name that a relation had before is free now, but for a
// derived one, and was that of one relation.
func (a *analyser) checkRenamed(f *parse.File) {
	taken := make(map[string]string)
	for i := range f.Schemas {
		s := &f.Schemas[i]
		name, was := s.Relation.Text, s.Was.Text
		if was == "" {
			continue
		}
		if other, ok := taken[was]; ok {
			a.fail(s.Was.Pos, "leave `was "+was+"` out at one of them",
				"both %s and %s take over the facts of %s", other, name, was)
			continue
		}
		taken[was] = name
		if id, ok := a.program.names[was]; ok && !a.program.Relations[id].Derived {
			a.fail(s.Was.Pos, "leave `was "+was+"` out: a relation is renamed once only",
				"%s has a schema of its own in line %d", was, a.program.Relations[id].Pos.Line)
		}
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
			switch t.Kind {
			case parse.Variable:
				c.Name = t.Name
			case parse.Aggregated:
				c.Name = t.Call.Name
			}
			r.Columns = append(r.Columns, c)
		}
		columnNames(r.Columns)
		a.program.names[name] = RelationID(len(a.program.Relations))
		a.program.Relations = append(a.program.Relations, r)
	}
}

// declareLeaf takes the name of a view or action.
func (a *analyser) declareLeaf(
	what string, name parse.Name, pos Position, parameters []parse.TypedName,
) {
	text := name.Text
	if other, ok := a.leaves[text]; ok {
		a.fail(name.Pos, "give one of them another name",
			"there is %s %s in line %d already", other.what, text, other.pos.Line)
		return
	}
	if id, ok := a.program.names[text]; ok && what == "a view" {
		a.fail(name.Pos, "views and relations share one namespace; give the view another name",
			"there is a relation %s in line %d already", text, a.program.Relations[id].Pos.Line)
	}
	a.leaves[text] = leaf{what, pos}
	for i, p := range parameters {
		for _, other := range parameters[:i] {
			if other.Name.Text == p.Name.Text {
				a.fail(p.Name.Pos, "", "%s has a parameter $%s already", text, p.Name.Text)
			}
		}
	}
}

func (a *analyser) declareParts(v *parse.View) {
	for i, p := range v.Parts {
		for _, other := range v.Parts[:i] {
			if other.Name.Text == p.Name.Text {
				a.fail(p.Name.Pos, "", "%s has a part %s already", v.Name.Text, p.Name.Text)
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
		a.resolveView(i, &f.Views[i])
	}
	for i := range f.Actions {
		a.resolveAction(i, &f.Actions[i])
	}
	for i := range f.Seeds {
		a.facts(&f.Seeds[i], func(row []value.Value) {
			fact := Fact{Relation: f.Seeds[i].Relation.Text, Row: row}
			a.program.Seed = append(a.program.Seed, fact)
		})
	}
}

func (a *analyser) resolveView(view int, v *parse.View) {
	var clauses []*clause
	for i := range v.Parts {
		q := &v.Parts[i].Query
		c := newQueryClause(q, v.Parameters)
		clauses = append(clauses, c)
		a.views = append(a.views, viewPart{view, v.Parts[i].Name.Text, c})
		a.resolveClause(c)
		a.checkOutput(c)
		if len(c.query.Order) > 0 && c.query.Window.Limit == 0 {
			a.fail(c.query.Order[0].Term.Pos, "rows come sorted by their columns; add limit 50, "+
				"and the order says which 50", "an order without a limit chooses nothing")
		}
	}
	a.checkParameters("the query of "+v.Name.Text+" does", v.Parameters, clauses)
}

func (a *analyser) resolveAction(i int, act *parse.Action) {
	var clauses []*clause
	for j := range act.Statements {
		w := newWrite(&act.Statements[j], act.Parameters, inAction)
		clauses = append(clauses, w.c)
		a.writes = append(a.writes, actionStep{i, w})
		a.resolveWrite(w)
	}
	a.checkParameters(act.Name.Text+" does", act.Parameters, clauses)
}

// emit makes the IR of rules, views and actions.
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
	for i := range f.Views {
		v := &f.Views[i]
		a.program.Views = append(a.program.Views, View{
			Name: v.Name.Text, Parameters: parameterColumns(v.Parameters), Pos: v.Pos,
			Text: v.String(),
		})
	}
	for _, part := range a.views {
		v := &a.program.Views[part.view]
		v.Parts = append(v.Parts, Part{Name: part.name, Query: a.emitQuery(part.c)})
	}
	for i := range f.Actions {
		act := &f.Actions[i]
		a.program.Actions = append(a.program.Actions, Action{
			Name: act.Name.Text, Parameters: parameterColumns(act.Parameters), Pos: act.Pos,
			Text: act.String(),
		})
	}
	for _, step := range a.writes {
		act := &a.program.Actions[step.action]
		act.Statements = append(act.Statements, a.emitWrite(step.w))
	}
}

func parameterColumns(declared []parse.TypedName) []Column {
	var columns []Column
	for _, p := range declared {
		columns = append(columns, Column{Name: p.Name.Text, Type: p.Type})
	}
	return columns
}
