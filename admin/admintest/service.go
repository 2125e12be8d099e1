// Package admintest holds an in-memory admin.Service for tests of the REST
// routes and their clients. It keeps facts as sets and answers queries with what
// the test put into it; it derives nothing and is durable nowhere. Only tests
// import it.
package admintest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/heddle-live/heddle/admin"
	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
)

// Service is an admin.Service. Its exported fields may be set before a request
// and read after one, not during.
type Service struct {
	// Fail, if set, is what every method that can fail returns.
	Fail error
	// FailOnce is returned by the next so many Transact and Query calls.
	FailOnce []error
	// Parts is what Problems returns.
	Parts []admin.PartProblem
	// Answer is what Query returns, with the graph's revision.
	Answer admin.QueryResult
	// Queries and Transactions are what was asked and written, in order.
	Queries      []Query
	Whys         []Why
	Transactions []admin.Transaction
	// Failing is what Errors returns.
	Failing []engine.RuleErrors
	// Applied are the options of each Apply, in order.
	Applied []admin.ApplyOptions
	// Compile checks a program's text for Apply.
	Compile func(source string) (*analysis.Program, error)

	mu     sync.Mutex
	graphs map[string]*graph
}

// Query is one query that was asked.
type Query struct {
	Graph   string
	Query   *analysis.Query
	Params  []value.Value
	Options admin.QueryOptions
}

type graph struct {
	info     admin.GraphInfo
	program  *analysis.Program
	facts    map[string]bool
	receipts map[string]receipt
}

type receipt struct {
	hash   [32]byte
	answer admin.Receipt
}

// New returns a service with no graphs.
func New() *Service { return &Service{graphs: map[string]*graph{}} }

// Put makes a graph with a program, or gives an existing one another program.
func (s *Service) Put(name string, program *analysis.Program) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.putLocked(name, program)
}

func (s *Service) putLocked(name string, program *analysis.Program) *graph {
	g := s.graphs[name]
	if g == nil {
		g = &graph{facts: map[string]bool{}, receipts: map[string]receipt{}}
		g.info = admin.GraphInfo{Name: name, Epoch: "01920000-0000-7000-8000-000000000000"}
		s.graphs[name] = g
	}
	g.program = program
	g.info.Schema++
	return g
}

// Graphs lists the graphs by name.
func (s *Service) Graphs(context.Context) ([]admin.GraphInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Fail != nil {
		return nil, s.Fail
	}
	var list []admin.GraphInfo
	for _, name := range slices.Sorted(maps.Keys(s.graphs)) {
		list = append(list, s.graphs[name].info)
	}
	return list, nil
}

// findLocked returns a graph, or the error that its absence or Fail is.
func (s *Service) findLocked(name string) (*graph, error) {
	if s.Fail != nil {
		return nil, s.Fail
	}
	g := s.graphs[name]
	if g == nil {
		return nil, fmt.Errorf("graph %q: %w", name, admin.ErrNotFound)
	}
	return g, nil
}

// Graph describes a graph.
func (s *Service) Graph(_ context.Context, name string) (admin.GraphInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.findLocked(name)
	if err != nil {
		return admin.GraphInfo{}, err
	}
	info := g.info
	info.Facts = len(g.facts)
	return info, nil
}

// CreateGraph makes an empty graph.
func (s *Service) CreateGraph(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Fail != nil {
		return s.Fail
	}
	if s.graphs[name] != nil {
		return fmt.Errorf("graph %q %w", name, admin.ErrExists)
	}
	s.putLocked(name, &analysis.Program{})
	return nil
}

// DropGraph deletes a graph.
func (s *Service) DropGraph(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.findLocked(name); err != nil {
		return err
	}
	delete(s.graphs, name)
	return nil
}

// Program returns a graph's program.
func (s *Service) Program(_ context.Context, name string) (admin.ProgramInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.findLocked(name)
	if err != nil {
		return admin.ProgramInfo{}, err
	}
	return admin.ProgramInfo{
		Source: g.program.Source, Revision: g.info.Revision, Schema: g.info.Schema,
	}, nil
}

// Schema returns a graph's checked program.
func (s *Service) Schema(name string) (*analysis.Program, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.findLocked(name)
	if err != nil {
		return nil, err
	}
	return g.program, nil
}

// Apply compiles source with Compile and puts it in force.
func (s *Service) Apply(_ context.Context, name, source string,
	opt admin.ApplyOptions,
) (admin.ApplyResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Applied = append(s.Applied, opt)
	g, err := s.findLocked(name)
	missing := err != nil
	if missing && (s.Fail != nil || !opt.Create) {
		return admin.ApplyResult{}, err
	}
	program, err := s.Compile(source)
	if err != nil {
		return admin.ApplyResult{}, err
	}
	result := admin.ApplyResult{DryRun: opt.DryRun, Created: missing}
	if !opt.DryRun {
		g = s.putLocked(name, program)
		g.info.Revision++
	}
	if g != nil {
		result.Revision, result.Schema = g.info.Revision, g.info.Schema
	}
	return result, nil
}

// nextFailLocked returns Fail, or else the next of FailOnce.
func (s *Service) nextFailLocked() error {
	if s.Fail != nil || len(s.FailOnce) == 0 {
		return s.Fail
	}
	err := s.FailOnce[0]
	s.FailOnce = s.FailOnce[1:]
	return err
}

// Transact applies a transaction to the graph's set of facts.
func (s *Service) Transact(_ context.Context, name string,
	tx admin.Transaction,
) (admin.Receipt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.findLocked(name)
	if err != nil {
		return admin.Receipt{}, err
	}
	if err := s.nextFailLocked(); err != nil {
		return admin.Receipt{}, err
	}
	if tx.Program != g.program {
		return admin.Receipt{}, admin.ErrProgramChanged
	}
	id := tx.Caller + "\x00" + tx.IdempotencyKey
	if old, ok := g.receipts[id]; ok && tx.IdempotencyKey != "" {
		if old.hash != tx.RequestHash {
			return admin.Receipt{}, admin.ErrIdempotencyMismatch
		}
		old.answer.Replayed = true
		return old.answer, nil
	}
	if want := tx.ExpectRevision; want != nil && *want != g.info.Revision {
		return admin.Receipt{}, admin.ErrPrecondition
	}
	s.Transactions = append(s.Transactions, tx)
	g.info.Revision++
	answer := admin.Receipt{Revision: g.info.Revision}
	for i := range tx.Statements {
		for _, op := range tx.Statements[i].Ops {
			g.write(op, &answer)
		}
	}
	if tx.IdempotencyKey != "" {
		g.receipts[id] = receipt{tx.RequestHash, answer}
	}
	return answer, nil
}

func (g *graph) write(op admin.Op, answer *admin.Receipt) {
	fact := Fact(op)
	switch {
	case op.Delete && g.facts[fact]:
		delete(g.facts, fact)
		answer.Deleted++
	case !op.Delete && !g.facts[fact]:
		g.facts[fact] = true
		answer.Inserted++
	}
}

// Fact spells an operation's row as a program does: edge(1, 2).
func Fact(op admin.Op) string {
	var text strings.Builder
	text.WriteString(op.Relation + "(")
	for i, v := range op.Row {
		if i > 0 {
			text.WriteString(", ")
		}
		text.WriteString(v.String())
	}
	return text.String() + ")"
}

// Facts returns a graph's facts, sorted by their spelling.
func (s *Service) Facts(name string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.graphs[name].facts))
}

// Query returns Answer.
func (s *Service) Query(_ context.Context, name string, q *analysis.Query, params []value.Value,
	opt admin.QueryOptions,
) (admin.QueryResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.findLocked(name)
	if err != nil {
		return admin.QueryResult{}, err
	}
	if err := s.nextFailLocked(); err != nil {
		return admin.QueryResult{}, err
	}
	if opt.Program != g.program {
		return admin.QueryResult{}, admin.ErrProgramChanged
	}
	s.Queries = append(s.Queries, Query{name, q, params, opt})
	result := s.Answer
	result.Revision = g.info.Revision
	return result, nil
}

// Errors returns Failing.
func (s *Service) Errors(_ context.Context, name string) (admin.ErrorList, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.findLocked(name)
	if err != nil {
		return admin.ErrorList{}, err
	}
	return admin.NewErrorList(g.info.Revision, s.Failing), nil
}

// Families lists a graph's views as families with one watched key each.
func (s *Service) Families(_ context.Context, name string) ([]admin.FamilyInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.findLocked(name)
	if err != nil {
		return nil, err
	}
	var list []admin.FamilyInfo
	for _, v := range g.program.Views {
		list = append(list, admin.FamilyInfo{
			View: v.Name, Parameters: admin.Columns(v.Parameters),
			WatchedKeys: 1, Viewers: 2, Revision: g.info.Revision,
		})
	}
	return list, nil
}

// Problems returns Parts.
func (s *Service) Problems(context.Context) []admin.PartProblem { return s.Parts }
