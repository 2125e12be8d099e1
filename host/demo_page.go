package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/heddle-live/heddle/admin"
	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/value"
	"github.com/heddle-live/heddle/examples/couriers"
	"github.com/heddle-live/heddle/host/demo"
)

// demoBodyBytes bounds what the page may post.
const demoBodyBytes = 4 << 10

// demoInfo tells the page what it shows.
type demoInfo struct {
	Graph    string             `json:"graph"`
	View     string             `json:"view"`
	Keys     []int64            `json:"keys"`
	Relation string             `json:"relation"`
	Columns  []admin.ColumnInfo `json:"columns"` // of the relation
	Program  string             `json:"program"`
}

// demoStats are the family's figures, over about the last second.
type demoStats struct {
	WatchedKeys             int     `json:"watchedKeys"`
	Viewers                 int     `json:"viewers"`
	WritesPerSecond         float64 `json:"writesPerSecond"`
	ServerCPUMicrosPerWrite float64 `json:"serverCpuMicrosPerWrite"`
	Revision                uint64  `json:"revision"`
}

// demoFact is what the page's form posts.
type demoFact struct {
	Op     string            `json:"op"`
	Values []json.RawMessage `json:"values"`
}

// handler serves the page and what it asks for.
func (d *demoPage) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", demo.Handler())
	mux.HandleFunc("GET /demo/info", func(w http.ResponseWriter, _ *http.Request) {
		d.reply(w, d.info)
	})
	mux.HandleFunc("GET /demo/stats", func(w http.ResponseWriter, r *http.Request) {
		d.reply(w, func() (any, error) { return d.stats(r.Context()) })
	})
	mux.HandleFunc("POST /demo/facts", func(w http.ResponseWriter, r *http.Request) {
		d.reply(w, func() (any, error) { return d.write(w, r) })
	})
	return mux
}

func (d *demoPage) reply(w http.ResponseWriter, answer func() (any, error)) {
	v, err := answer()
	if err != nil {
		admin.WriteError(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(v) // a page that left is no error of ours
}

func (d *demoPage) info() (any, error) {
	program, err := d.server.Service().Schema(demoGraph)
	if err != nil {
		return nil, err
	}
	id, ok := program.RelationNamed(couriers.Relation)
	if !ok {
		return nil, fmt.Errorf("relation %s: %w", couriers.Relation, admin.ErrNotFound)
	}
	info := demoInfo{
		Graph: demoGraph, View: couriers.View, Relation: couriers.Relation,
		Columns: admin.Columns(program.Relations[id].Columns), Program: program.Source,
	}
	for k := range int64(couriers.Couriers) {
		info.Keys = append(info.Keys, k+1)
	}
	return info, nil
}

func (d *demoPage) stats(ctx context.Context) (any, error) {
	families, err := d.server.Service().Families(ctx, demoGraph)
	if err != nil {
		return nil, err
	}
	var s demoStats
	for _, f := range families {
		if f.View == couriers.View {
			s.WatchedKeys, s.Viewers, s.Revision = f.WatchedKeys, f.Viewers, f.Revision
		}
	}
	s.WritesPerSecond, s.ServerCPUMicrosPerWrite = d.rates.look(
		d.server.counters.ingest.Transactions.Load(), time.Now())
	return s, nil
}

// write inserts or deletes the one fact that the form posts.
func (d *demoPage) write(w http.ResponseWriter, r *http.Request) (any, error) {
	var fact demoFact
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, demoBodyBytes))
	if err := decoder.Decode(&fact); err != nil {
		return nil, badFact("the body is not {\"op\": …, \"values\": […]}: %v", err)
	}
	if fact.Op != "insert" && fact.Op != "delete" {
		return nil, badFact("op is %q; insert and delete are known", fact.Op)
	}
	row := make([]value.Value, len(fact.Values))
	for i, text := range fact.Values {
		var cell int64
		if err := json.Unmarshal(text, &cell); err != nil {
			return nil, badFact("value %d is %s; a whole number is expected", i+1, text)
		}
		row[i] = value.OfInt(cell)
	}
	program, err := d.server.Service().Schema(demoGraph)
	if err != nil {
		return nil, err
	}
	if err := analysis.CheckRow(program, couriers.Relation, row); err != nil {
		return nil, err
	}
	op := analysis.Op{Relation: couriers.Relation, Delete: fact.Op == "delete", Row: row}
	receipt, err := d.server.Service().Transact(r.Context(), demoGraph, admin.Transaction{
		Program: program, Caller: "page", Statements: engine.Plain([]analysis.Op{op}),
	})
	return receipt, err
}

func badFact(format string, args ...any) error {
	return &admin.Problem{
		Title: http.StatusText(http.StatusBadRequest), Status: http.StatusBadRequest,
		Code: "fact_invalid", Detail: fmt.Sprintf(format, args...),
	}
}

// rates turns counters into rates between two looks that are half a second
// apart at least; between such looks the last figures stand.
type rates struct {
	mu      sync.Mutex
	at      time.Time
	writes  uint64
	cpu     time.Duration
	perSec  float64
	perLoad float64 // microseconds of CPU per write
}

func (r *rates) look(writes uint64, now time.Time) (writesPerSecond, cpuMicrosPerWrite float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if since := now.Sub(r.at); since >= 500*time.Millisecond {
		cpu := processCPU()
		if !r.at.IsZero() {
			n := float64(writes - r.writes)
			r.perSec, r.perLoad = n/since.Seconds(), 0
			if n > 0 {
				r.perLoad = float64((cpu - r.cpu).Microseconds()) / n
			}
		}
		r.at, r.writes, r.cpu = now, writes, cpu
	}
	return r.perSec, r.perLoad
}

// processCPU is the user and system time that this process has used.
func processCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// holders asks who carries each parcel.
func (d *demoPage) holders(ctx context.Context) (map[int64]int64, error) {
	program, err := d.server.Service().Schema(demoGraph)
	if err != nil {
		return nil, err
	}
	parsed, err := parse.Query("?" + couriers.Relation + "(Courier, Parcel)")
	if err != nil {
		return nil, err
	}
	query, err := analysis.AnalyseQuery(program, parsed)
	if err != nil {
		return nil, err
	}
	result, err := d.server.Service().Query(ctx, demoGraph, query, nil, admin.QueryOptions{
		Program: program, MaxRows: 1 << 20, Deadline: time.Now().Add(10 * time.Second),
	})
	if err != nil {
		return nil, err
	}
	if result.Truncated {
		return nil, errors.New("the demo's graph has grown too large: start it without --data")
	}
	holder := map[int64]int64{}
	for i := 0; i+1 < len(result.Rows); i += 2 {
		holder[result.Rows[i+1].Int()] = result.Rows[i].Int()
	}
	return holder, nil
}
