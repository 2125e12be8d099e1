package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/proof"
	"github.com/heddle-live/heddle/engine/value"
)

// Limits of what one explanation may be asked for.
const (
	whyRowsMax   = 100
	whyNodesMax  = 2000
	whyLevelsMax = 50
)

// WhyOptions bounds an explanation.
type WhyOptions struct {
	Program     *analysis.Program // what the query was analysed against
	Not         bool              // explain why there is no row
	Limits      proof.Limits
	MinRevision uint64    // as in QueryOptions
	Deadline    time.Time // as in QueryOptions
}

// WhyResult is an explanation: a Proof, or with WhyOptions.Not an Absence. The caller
// may change it.
type WhyResult struct {
	Revision uint64
	Proof    *proof.Proof
	Absence  *proof.Absence
}

// whyBody documents a request for an explanation; decodeWhy reads it.
type whyBody struct {
	Query       string         `json:"query" doc:"The query's text" example:"?hop2(1, 3)"`
	Parameters  map[string]any `json:"parameters,omitempty" doc:"A value for each $name"`
	Limit       int            `json:"limit,omitempty" doc:"Prove so many rows; 1 if absent"`
	Nodes       int            `json:"nodes,omitempty" doc:"At most so many rows in the answer; 200 if absent"`
	Levels      int            `json:"levels,omitempty" doc:"Of why-not: follow missing rows so deep; 4 if absent"`
	MinRevision uint64         `json:"min_revision,omitempty" doc:"Wait for this revision"`
	DeadlineMS  int            `json:"deadline_ms,omitempty" doc:"Give up after this time"`
}

// whyAnswer is a proof. Nodes refer to each other by their place in the list.
type whyAnswer struct {
	Revision uint64    `json:"revision" doc:"What the answer knows"`
	Query    string    `json:"query" doc:"The query as it was asked"`
	Rows     int       `json:"rows" doc:"How many rows the query has"`
	Cut      string    `json:"cut,omitempty" enum:"nodes,steps,bytes" doc:"The limit that left something out"`
	Text     string    `json:"text" doc:"The proof for people, lines of a tree"`
	Roots    []int     `json:"roots" doc:"The nodes of the rows that are proved"`
	Nodes    []whyNode `json:"nodes" doc:"The rows of the proof; none leads back to itself"`
}

type whyNode struct {
	Relation string     `json:"relation,omitempty" doc:"Whose row it is; absent for the query"`
	Row      []string   `json:"row" doc:"The values, as a program spells them"`
	Fact     bool       `json:"fact,omitempty" doc:"It was written; no rule is needed"`
	Cut      bool       `json:"cut,omitempty" doc:"A limit left out why, or a part of it"`
	Rule     string     `json:"rule,omitempty" doc:"The rule that gives it"`
	Line     int        `json:"line,omitempty" doc:"The rule's line in the program"`
	Column   int        `json:"column,omitempty" doc:"Its column in that line"`
	Match    *whyMatch  `json:"match,omitempty" doc:"How the rule's body, or the query, holds"`
	Matches  int        `json:"matches,omitempty" doc:"Of an aggregate: how many matches it is over"`
	AtLeast  bool       `json:"at_least,omitempty" doc:"There are more matches than were counted"`
	Shown    []whyMatch `json:"shown,omitempty" doc:"The first of these matches"`
}

type whyMatch struct {
	Bindings map[string]string `json:"bindings" doc:"Variables, as a program spells values"`
	Because  []whyReason       `json:"because" doc:"The conditions of the body, all of which hold"`
}

type whyReason struct {
	Kind string `json:"kind" enum:"row,negation,comparison,computation" doc:"What it is"`
	Text string `json:"text" doc:"The condition with its values"`
	Node *int   `json:"node,omitempty" doc:"The node of the row"`
}

// whyNotAnswer is why there is no row.
type whyNotAnswer struct {
	Revision uint64       `json:"revision" doc:"What the answer knows"`
	Query    string       `json:"query" doc:"The query as it was asked"`
	Rows     int          `json:"rows" doc:"Rows that it has after all; then nothing is absent"`
	Beyond   int          `json:"beyond,omitempty" doc:"Rows that its limit and offset leave out"`
	Cut      string       `json:"cut,omitempty" enum:"nodes,steps,bytes,levels" doc:"The limit that left something out"`
	Text     string       `json:"text" doc:"The same for people, lines of a tree"`
	Absent   []whyMissing `json:"absent" doc:"First the query, then rows that would help it and are missing"`
}

type whyMissing struct {
	Relation string       `json:"relation,omitempty" doc:"Whose rows are missing; absent for the query"`
	Row      []string     `json:"row" doc:"The values of every such row; _ stands for any"`
	Cut      bool         `json:"cut,omitempty" doc:"A limit left out why"`
	Failures []whyFailure `json:"failures" doc:"What fails, for each rule of the relation"`
}

type whyFailure struct {
	Rule    string    `json:"rule,omitempty" doc:"The rule; absent for the query"`
	Line    int       `json:"line,omitempty" doc:"The rule's line in the program"`
	Column  int       `json:"column,omitempty" doc:"Its column in that line"`
	Kind    string    `json:"kind" enum:"head,row,negation,comparison,computation,computed,aggregate,overflow,none_chosen" doc:"What fails"`
	Text    string    `json:"text" doc:"What fails, for the first match of the conditions before it"`
	Matches int       `json:"matches" doc:"How many matches these have; what fails, fails for all"`
	First   *whyMatch `json:"first,omitempty" doc:"The first of these matches"`
	Absent  *int      `json:"absent,omitempty" doc:"Why the row is missing: a place in absent"`
	Given   []string  `json:"given,omitempty" doc:"Rows that an aggregate gives instead, the first few"`
}

func (a *API) why(w http.ResponseWriter, r *http.Request) error    { return a.explain(w, r, false) }
func (a *API) whyNot(w http.ResponseWriter, r *http.Request) error { return a.explain(w, r, true) }

func (a *API) explain(w http.ResponseWriter, r *http.Request, not bool) error {
	graph := pathValue(r, "graph")
	src, err := readBody(w, r, a.limits.BodyBytes, limitBody)
	if err != nil {
		return err
	}
	shape, err := shapeOf(r, src)
	if err != nil {
		return err
	}
	request, opt := queryRequest{text: src}, WhyOptions{Not: not}
	if shape == shapeJSON {
		if request, opt.Limits, err = a.decodeWhy(src); err != nil {
			return err
		}
		opt.Not = not
	}
	wait := a.limits.QueryDeadline
	if request.deadlineMS > 0 {
		wait = time.Duration(request.deadlineMS) * time.Millisecond
	}
	opt.Deadline, opt.MinRevision = time.Now().Add(wait), request.minRevision
	ctx, cancel := context.WithDeadlineCause(r.Context(), opt.Deadline, ErrDeadline)
	defer cancel()
	var result WhyResult
	for attempt := 1; ; attempt++ {
		result, err = a.askWhy(ctx, graph, &request, opt)
		if !programChanged(err) || attempt == programChangesMax {
			break
		}
	}
	switch {
	case err != nil && r.Context().Err() == nil && outOfTime(err):
		return a.queryLate(&request, wait)
	case err != nil:
		return graphError(graph, err)
	case not:
		return writeJSON(w, http.StatusOK, whyNotOf(&result, request.text))
	}
	return writeJSON(w, http.StatusOK, whyOf(&result, request.text))
}

// askWhy analyses the query by the program that is in force now and has it explained.
func (a *API) askWhy(ctx context.Context, graph string, request *queryRequest, opt WhyOptions) (
	WhyResult, error,
) {
	var err error
	if opt.Program, err = a.service.Schema(graph); err != nil {
		return WhyResult{}, err
	}
	q, err := parseQuery(opt.Program, request.text)
	if err != nil {
		return WhyResult{}, err
	}
	params, err := request.values(q.Parameters)
	if err != nil {
		return WhyResult{}, err
	}
	return a.service.Why(ctx, graph, q, params, opt)
}

func (a *API) decodeWhy(src string) (queryRequest, proof.Limits, error) {
	q := queryRequest{body: src}
	var limits proof.Limits
	known := []string{
		"query", "parameters", "limit", "nodes", "levels", "min_revision", "deadline_ms",
	}
	const hint = `send {"query": "?hop2($from, 3)", "parameters": {"from": 1}}`
	number := func(s *scanner, name string, most uint64, into *int) error {
		var n uint64
		err := s.uintMember(name, most, &n)
		*into = int(n)
		return err
	}
	err := decodeMembers(src, known, hint, func(s *scanner, name string) error {
		switch name {
		case "limit":
			return number(s, name, whyRowsMax, &limits.Rows)
		case "nodes":
			return number(s, name, whyNodesMax, &limits.Nodes)
		case "levels":
			return number(s, name, whyLevelsMax, &limits.Levels)
		}
		return q.member(s, name, a.limits.QueryDeadline)
	})
	if err == nil && q.text == "" {
		err = jsonProblem(src,
			&scanError{message: `the member "query" is missing or empty`, hint: hint})
	}
	return q, limits, err
}

func whyOf(r *WhyResult, text string) *whyAnswer {
	p := r.Proof
	p.Query = text
	out := &whyAnswer{
		Revision: r.Revision, Query: text, Rows: p.Rows, Cut: string(p.Cut), Text: p.String(),
		Roots: append([]int{}, p.Roots...), Nodes: []whyNode{},
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		node := whyNode{
			Relation: n.Row.Relation, Row: spelled(n.Row.Values), Fact: n.Fact, Cut: n.Cut,
			Matches: n.Matches, AtLeast: n.AtLeast,
		}
		if n.Clause.Rule >= 0 {
			node.Rule = n.Clause.Text
			node.Line, node.Column = n.Clause.Pos.Line, n.Clause.Pos.Column
		}
		if n.Because != nil {
			node.Match = matchOf(&n.Match)
		}
		for k := range n.Shown {
			node.Shown = append(node.Shown, *matchOf(&n.Shown[k]))
		}
		out.Nodes = append(out.Nodes, node)
	}
	return out
}

func matchOf(m *proof.Match) *whyMatch {
	out := &whyMatch{Bindings: map[string]string{}, Because: []whyReason{}}
	for _, b := range m.Bindings {
		out.Bindings[b.Name] = b.Value.String()
	}
	for _, r := range m.Because {
		reason := whyReason{Kind: literalNames[r.Kind], Text: r.Text}
		if r.Node >= 0 {
			reason.Node = new(r.Node)
		}
		out.Because = append(out.Because, reason)
	}
	return out
}

var literalNames = [...]string{
	proof.Atom: "row", proof.Negation: "negation", proof.Comparison: "comparison",
	proof.Computation: "computation",
}

var failureNames = [...]string{
	proof.FailHead: "head", proof.FailComputed: "computed", proof.FailAggregate: "aggregate",
	proof.FailOverflow: "overflow", proof.FailNoneChosen: "none_chosen",
}

func whyNotOf(r *WhyResult, text string) *whyNotAnswer {
	a := r.Absence
	a.Query = text
	out := &whyNotAnswer{
		Revision: r.Revision, Query: text, Rows: a.Rows, Beyond: a.Beyond, Cut: string(a.Cut),
		Text: a.String(), Absent: []whyMissing{},
	}
	for i := range a.Absent {
		n := &a.Absent[i]
		missing := whyMissing{
			Relation: n.Row.Relation, Row: spelled(n.Row.Values), Cut: n.Cut,
			Failures: []whyFailure{},
		}
		for k := range n.Failures {
			missing.Failures = append(missing.Failures, failureOf(&n.Failures[k]))
		}
		out.Absent = append(out.Absent, missing)
	}
	return out
}

func failureOf(f *proof.Failure) whyFailure {
	out := whyFailure{Text: f.Text, Matches: f.Matches, Kind: failureNames[f.Kind]}
	if f.Kind == proof.FailCondition {
		out.Kind = literalNames[f.Literal.Kind]
	}
	if f.Clause.Rule >= 0 {
		out.Rule, out.Line, out.Column = f.Clause.Text, f.Clause.Pos.Line, f.Clause.Pos.Column
	}
	if f.Kind != proof.FailHead {
		out.First = matchOf(&f.First)
	}
	if f.Node >= 0 {
		out.Absent = new(f.Node)
	}
	for _, row := range f.Given {
		out.Given = append(out.Given, row.String())
	}
	return out
}

// spelled spells values as a program does; _ stands for any.
func spelled(values []value.Value) []string {
	out := make([]string, len(values))
	for i, v := range values {
		if out[i] = "_"; v.Kind() != value.Invalid {
			out[i] = v.String()
		}
	}
	return out
}
