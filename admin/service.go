package admin

import (
	"context"
	"errors"
	"time"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
)

// Service is what the REST routes need of the process. Its methods are called
// from many request goroutines at once. A method that writes returns only after
// the write is durable. Errors that have a meaning for the client wrap one of
// the sentinels below, are parse.Errors or an *engine.DataLossError; any other
// error is answered 500 with a request number, logged, and its text kept from the client.
type Service interface {
	// Graphs lists all graphs, sorted by name.
	Graphs(ctx context.Context) ([]GraphInfo, error)
	// Graph describes one graph, or ErrNotFound.
	Graph(ctx context.Context, graph string) (GraphInfo, error)
	// CreateGraph makes an empty graph, or returns ErrExists. The name has passed CheckGraphName.
	CreateGraph(ctx context.Context, graph string) error
	// DropGraph deletes a graph with everything in it, or returns ErrNotFound.
	DropGraph(ctx context.Context, graph string) error

	// Program returns the program that is in force.
	Program(ctx context.Context, graph string) (ProgramInfo, error)
	// Apply makes source the graph's whole program. A refused one changes nothing.
	Apply(ctx context.Context, graph, source string, opt ApplyOptions) (ApplyResult, error)
	// Schema returns the checked program in force, immutable, without waiting
	// for the graph's loop. It is called once for every transaction and query.
	Schema(graph string) (*analysis.Program, error)

	// Transact commits tx as one transaction. It returns ErrProgramChanged,
	// with no effect, if tx.Program is no longer in force; the caller decodes again.
	Transact(ctx context.Context, graph string, tx Transaction) (Receipt, error)
	// Query answers q, which was analysed against opt.Program; ErrProgramChanged as in Transact.
	Query(ctx context.Context, graph string, q *analysis.Query, params []value.Value,
		opt QueryOptions) (QueryResult, error)

	// Why explains the rows of q, or why it has none; otherwise it is like Query.
	Why(ctx context.Context, graph string, q *analysis.Query, params []value.Value,
		opt WhyOptions) (WhyResult, error)

	// Explain tells how a view or relation is evaluated, with a profile after counting
	// for that long. The error may wrap engine.ErrUnknownRelation.
	Explain(ctx context.Context, graph, name string, profile time.Duration) (
		ExplainResult, error)
	// Errors lists what a graph's rules cannot compute now.
	Errors(ctx context.Context, graph string) (ErrorList, error)
	// Families lists a graph's families, in the order of the program's views.
	Families(ctx context.Context, graph string) ([]FamilyInfo, error)
	// Problems probes every part that a request needs (each graph's loop, the
	// journal) and returns those that fail; none means ready.
	Problems(ctx context.Context) []PartProblem
}

// The errors of a Service that clients can act on. Wrap them (`%w`) with what
// was looked for or why; the text before them reaches the client.
var (
	ErrNotFound       = errors.New("not found")                        // 404
	ErrExists         = errors.New("exists already")                   // 409
	ErrProgramChanged = errors.New("the program changed meanwhile")    // 409 after retries
	ErrPrecondition   = errors.New("the graph is at another revision") // 409
	ErrBusy           = errors.New("the graph's queue is full")        // 429, Retry-After
	ErrClosing        = errors.New("the server is shutting down")      // 503, Retry-After
	ErrDeadline       = errors.New("the deadline passed")              // 504
	ErrReadOnly       = errors.New("the graph is read-only")           // 507
	ErrFull           = errors.New("the graph is full")                // 507
	ErrTooExpensive   = errors.New("the query needs too many steps")   // 422
	ErrTooLarge       = errors.New("a value is too large")             // 413
	// ErrUnknownOutcome says that a write was taken and may be durable or not; it is
	// answered 503, Retry-After.
	ErrUnknownOutcome = errors.New("the outcome is unknown")
	// ErrIdempotencyMismatch is answered 422.
	ErrIdempotencyMismatch = errors.New("this Idempotency-Key was used with another body")
)

// GraphInfo describes a graph.
type GraphInfo struct {
	Name        string `json:"name" doc:"The graph's name" example:"shop"`
	Revision    uint64 `json:"revision" doc:"Number of the last commit; 0 before the first"`
	Epoch       string `json:"epoch" doc:"UUIDv7 of this opening of the graph's log"`
	Schema      uint64 `json:"schema" doc:"Number of the program in force; rises with every apply"`
	Facts       int    `json:"facts" doc:"Rows in base relations"`
	WatchedKeys int    `json:"watched_keys" doc:"Keys of views that somebody watches"`
	ReadOnly    bool   `json:"read_only" doc:"True while low disk space refuses writes"`
}

// ProgramInfo is the program in force. Revision is that of the commit that applied it.
type ProgramInfo struct {
	Source   string `json:"source" doc:"The program's text as it was applied"`
	Revision uint64 `json:"revision" doc:"Revision of the commit that applied it"`
	Schema   uint64 `json:"schema" doc:"Number of the program; rises with every apply"`
}

// ApplyOptions says how far Apply may go.
type ApplyOptions struct {
	DryRun    bool // only say what would change; no effect
	AllowLoss bool // drop facts where the new program has no place for them
	Create    bool // create the graph if there is none; a refused program creates nothing
}

// ApplyResult says what Apply did, or would do.
type ApplyResult struct {
	Revision uint64 // of the commit; for a dry run the present one
	Schema   uint64 // number of the program in force afterwards
	Created  bool   // the graph was created
	DryRun   bool
	Diff     *engine.Diff
}

// Op inserts or deletes one row of a base relation.
type Op = analysis.Op

// Transaction is one transaction or call of an action, decoded and checked against
// Program.
type Transaction struct {
	Program *analysis.Program // what Statements were checked against
	// Statements are in order; the service owns what they hold from the call on.
	Statements     []analysis.Statement
	Parameters     []value.Value // of the action
	ExpectRevision *uint64       // what the graph must be at, else ErrPrecondition

	Caller         string   // who wrote it; the scope of IdempotencyKey
	IdempotencyKey string   // opaque, at most 255 bytes; "" for none
	RequestHash    [32]byte // of the request's content; zero without an IdempotencyKey
}

// Receipt is the answer to a durable transaction.
type Receipt struct {
	Revision uint64 `json:"revision" doc:"The transaction's revision"`
	Inserted int    `json:"inserted" doc:"Rows that were not there before"`
	Deleted  int    `json:"deleted" doc:"Rows that are gone"`
	Replayed bool   `json:"replayed" doc:"The first answer again; nothing was written now"`
	// Statements is nil for a transaction of plain rows.
	Statements []StatementReceipt `json:"statements,omitempty" doc:"What each statement did"`
}

// StatementReceipt tells what one statement of a transaction did.
type StatementReceipt = engine.StatementOutcome

// QueryOptions bounds a query.
type QueryOptions struct {
	Program     *analysis.Program // what the query was analysed against
	MaxRows     int               // at most this many rows are returned; >= 1
	MinRevision uint64            // wait until the graph has reached it, ErrDeadline if it does not
	Deadline    time.Time         // the context ends then as well; ErrDeadline
}

// QueryResult is a query's answer: rows flat, width len(Columns), sorted, no duplicates.
type QueryResult struct {
	Revision  uint64
	Columns   []analysis.Column
	Rows      []value.Value
	Count     int  // of rows; needed only where there are no columns
	Truncated bool // there were more than MaxRows
	// Errors, if not nil, are why rows may be missing.
	Errors *engine.RuleErrors
}

// FamilyInfo describes all keyed views of one view.
type FamilyInfo struct {
	View        string       `json:"view" doc:"The view's name"`
	Parameters  []ColumnInfo `json:"parameters" doc:"The parameters that make a key, in order"`
	WatchedKeys int          `json:"watched_keys" doc:"Keys that the engine maintains"`
	Viewers     int          `json:"viewers" doc:"Subscriptions to those keys"`
	Revision    uint64       `json:"revision" doc:"The revision that its rows have reached"`
}

// ColumnInfo is a column or parameter as clients see it.
type ColumnInfo struct {
	Name string `json:"name" doc:"Its name"`
	Type string `json:"type" enum:"int,float,string,bool,bytes,timestamp" doc:"Its type"`
	// Nullable is left out where it is false.
	Nullable bool `json:"nullable,omitempty" doc:"Whether it may hold null"`
}

// Columns returns the columns as clients see them, in order.
func Columns(columns []analysis.Column) []ColumnInfo {
	out := make([]ColumnInfo, len(columns))
	for i, c := range columns {
		out[i] = ColumnInfo{Name: c.Name, Type: c.Type.String(), Nullable: c.Nullable}
	}
	return out
}

// PartProblem names a part that is not ready, and why.
type PartProblem struct {
	Part   string // such as "journal" or "graph shop"
	Reason string // one line, safe to show
}
