package admin

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/dataflow"
)

// profileMax is the longest that a profile is taken, in milliseconds.
const profileMax = 60_000

// ExplainResult is how a view or relation is evaluated at a revision.
type ExplainResult struct {
	Revision uint64
	Plan     *engine.Plan
}

// planAnswer documents and carries a plan.
type planAnswer struct {
	Revision    uint64      `json:"revision" doc:"What the answer knows"`
	Of          string      `json:"of" doc:"The view or relation"`
	Kind        string      `json:"kind" enum:"view,relation,rules" doc:"What it is: relation is one of facts"`
	WatchedKeys int         `json:"watched_keys" doc:"Of the view"`
	Query       string      `json:"query,omitempty" doc:"Where nothing is kept of it: the query whose plan this is"`
	Profiled    bool        `json:"profiled" doc:"Whether runs, nanoseconds and passed were counted"`
	Text        string      `json:"text" doc:"The same for people"`
	Sets        []planSet   `json:"sets" doc:"The sets of rows that take part"`
	Indexes     []planIndex `json:"indexes" doc:"The indexes that the plans use"`
	Rules       []planRule  `json:"rules" doc:"The rules as they are evaluated"`
	Notes       []string    `json:"notes" doc:"What was done to the rules, or refused, and why"`
}

type planSet struct {
	Name string `json:"name" doc:"As the rules here call it"`
	What string `json:"what" doc:"What its rows are"`
	Rows int    `json:"rows" doc:"How many there are now"`
}

type planIndex struct {
	Of      string   `json:"of" doc:"The set"`
	Columns []string `json:"columns" doc:"What rows are looked up by"`
	Keys    int      `json:"keys" doc:"Different values of these"`
	Rows    int      `json:"rows" doc:"Rows of the set"`
}

type planRule struct {
	Rule   string     `json:"rule,omitempty" doc:"The rule of the program that this comes from"`
	View   string     `json:"view,omitempty" doc:"Or the view, with its part"`
	Line   int        `json:"line,omitempty" doc:"The rule's line in the program"`
	Column int        `json:"column,omitempty" doc:"Its column in that line"`
	Text   string     `json:"text" doc:"The rule as it is evaluated"`
	Plans  []planInfo `json:"plans" doc:"One for each atom: what is done when a row of it comes or goes"`
}

type planInfo struct {
	From        string     `json:"from" doc:"The atom whose rows start the plan"`
	Steps       []planStep `json:"steps" doc:"In order; each for every row that the one before finds"`
	Instead     *planInfo  `json:"instead,omitempty" doc:"Done if driver has fewer rows than the first step would find"`
	Driver      string     `json:"driver,omitempty" doc:"The set that instead begins with"`
	Runs        uint64     `json:"runs,omitempty" doc:"Profile: how often it ran"`
	Nanoseconds uint64     `json:"nanoseconds,omitempty" doc:"Profile: how long that took"`
}

type planStep struct {
	Text   string   `json:"text" doc:"What is done"`
	About  *float64 `json:"about,omitempty" doc:"Rows that it finds on average; absent for tests"`
	Passed uint64   `json:"passed,omitempty" doc:"Profile: how often the plan went on behind it"`
}

var profileFlag = flag{
	"profile_ms", "Count for so many milliseconds what the plans do, then answer; at most 60,000.",
	true,
}

func (a *API) explainPlan(w http.ResponseWriter, r *http.Request) error {
	graph, name := pathValue(r, "graph"), pathValue(r, "name")
	_, numbers, err := queryValues(r, []flag{profileFlag})
	if err != nil {
		return err
	}
	if numbers["profile_ms"] > profileMax {
		return newProblem(http.StatusBadRequest, "parameter_invalid",
			"query parameter profile_ms: at most %d", profileMax)
	}
	program, err := a.service.Schema(graph)
	if err != nil {
		return graphError(graph, err)
	}
	result, err := a.service.Explain(r.Context(), graph, name,
		time.Duration(numbers["profile_ms"])*time.Millisecond)
	if errors.Is(err, engine.ErrUnknownRelation) {
		return nameUnknown(program, name)
	}
	if err != nil {
		return graphError(graph, err)
	}
	return writeJSON(w, http.StatusOK, planOf(&result))
}

func nameUnknown(program *analysis.Program, name string) error {
	var known []string
	for i := range program.Views {
		known = append(known, program.Views[i].Name)
	}
	for i := range program.Relations {
		known = append(known, program.Relations[i].Name)
	}
	return newProblem(http.StatusNotFound, "name_unknown", "there is no view or relation %q",
		shortened(name)).withHint("%s", didYouMean(name, known,
		"name a view, a relation, or what a rule derives"))
}

func planOf(r *ExplainResult) *planAnswer {
	p := r.Plan
	out := &planAnswer{
		Revision: r.Revision, Of: p.Of, Kind: p.Kind, WatchedKeys: p.WatchedKeys, Query: p.Query,
		Profiled: p.Profiled, Text: p.String(), Sets: []planSet{}, Indexes: []planIndex{},
		Rules: []planRule{}, Notes: slices.Concat([]string{}, p.Notes),
	}
	if out.Notes == nil {
		out.Notes = []string{}
	}
	for _, s := range p.Sets {
		out.Sets = append(out.Sets, planSet(s))
	}
	for _, ix := range p.Indexes {
		out.Indexes = append(out.Indexes, planIndex(ix))
	}
	for i := range p.Rules {
		from := &p.Rules[i]
		rule := planRule{
			Rule: from.Rule, View: from.View, Line: from.Pos.Line, Column: from.Pos.Column,
			Text: from.Text, Plans: []planInfo{},
		}
		for k := range from.Plans {
			rule.Plans = append(rule.Plans, planInfoOf(&from.Plans[k]))
		}
		out.Rules = append(out.Rules, rule)
	}
	return out
}

func planInfoOf(p *dataflow.PlanInfo) planInfo {
	out := planInfo{
		From: p.From, Steps: []planStep{}, Driver: p.Driver, Runs: p.Runs, Nanoseconds: p.Nanos,
	}
	for _, s := range p.Steps {
		step := planStep{Text: s.Text, Passed: s.Passed}
		if s.About >= 0 {
			step.About = new(s.About)
		}
		out.Steps = append(out.Steps, step)
	}
	if p.Instead != nil {
		instead := planInfoOf(p.Instead)
		out.Instead = &instead
	}
	return out
}
