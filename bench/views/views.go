// Package views measures what keyed views cost: many chains of edges, one
// family, a viewer for each of K keys, and one durable write at a time that
// changes the rows of one key. It runs `heddle serve` as a process of its own,
// reaches it as users do, and verifies every frame that arrives and that no
// other does. In the same run, in turn with it, it measures the floor.
package views

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/heddle-live/heddle/bench/floor"
	"github.com/heddle-live/heddle/bench/graph"
	"github.com/heddle-live/heddle/bench/process"
	"github.com/heddle-live/heddle/bench/report"
)

const (
	graphName = "bench"
	// loadSeed decides the order in which the edges are loaded.
	loadSeed = 42
)

// Options say what to measure.
type Options struct {
	Floor     floor.Options // its Keys are set for each cell
	Serve     []string      // arguments of this executable that start the server
	Edges     int           // in the graph, rounded up to whole chains of three
	Keys      []int         // viewers connected, a cell for each number
	Writes    int           // measured in each cell
	Transport string        // "quic" or "webtransport", of viewers and of the floor's
	Directory string        // for the journal; "" is the temporary one
}

// Run starts the server, loads the graph, and measures one cell for each number
// of keys. A cell that cannot be measured or in which something wrong was seen
// is not in order and says why. Errors are of the set-up, or the end of ctx.
func Run(ctx context.Context, o Options) (_ *report.Report, err error) {
	g := graph.New(o.Edges)
	for _, n := range o.Keys {
		if n > g.HotHeads() {
			return nil, fmt.Errorf("%d keys, but %d edges have %d hot heads",
				n, g.Edges(), g.HotHeads())
		}
	}
	directory, err := os.MkdirTemp(o.Directory, "heddle-views-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	s, err := start(ctx, o, directory)
	if err != nil {
		return nil, err
	}
	r, err := s.run(ctx, o, g)
	// A server that ends badly spoils the run, and is no reason to lose it.
	if stopped := s.child.Stop(); stopped != nil && r != nil {
		r.Cells[len(r.Cells)-1].Problem("%v", stopped)
	}
	return r, err
}

// run loads the graph and measures the cells.
func (s *server) run(ctx context.Context, o Options, g graph.Graph) (*report.Report, error) {
	r := report.New("views", map[string]any{
		"edges": g.Edges(), "writes": o.Writes, "transport": o.Transport,
	})
	began := time.Now()
	if err := s.load(ctx, g); err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	r.Params["load_seconds"] = report.Round(time.Since(began).Seconds(), 2)
	m := newModel(g)
	for _, n := range o.Keys {
		c := report.NewCell(fmt.Sprintf("keys=%d", n), map[string]any{"keys": n})
		if err := s.runCell(ctx, o, m, n, &c); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			c.Problem("%v", err)
		}
		r.Cells = append(r.Cells, c)
	}
	return r, nil
}

// server is the running server under test.
type server struct {
	child *process.Child
	admin *rest
	data  string // host:port, TCP and UDP
	hash  [32]byte
}

// start runs the server and waits until it takes requests.
func start(ctx context.Context, o Options, directory string) (_ *server, err error) {
	key := rand.Text()
	args := append(slices.Clone(o.Serve), "--data-dir", directory,
		"--data-listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
	child, err := process.StartSelf(ctx, []string{"HEDDLE_ADMIN_KEY=" + key}, args...)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, child.Stop())
		}
	}()
	var at struct {
		Data  string `json:"data"`
		Admin string `json:"admin"`
	}
	if err := json.Unmarshal([]byte(child.Ready), &at); err != nil {
		return nil, fmt.Errorf("server's first line %q: %w", child.Ready, err)
	}
	s := &server{
		child: child, data: at.Data,
		admin: &rest{base: "http://" + at.Admin, key: key, client: &http.Client{}},
	}
	s.hash, err = certificateHash(ctx, at.Data)
	return s, err
}

// load creates the graph and sends its facts as two tables.
func (s *server) load(ctx context.Context, g graph.Graph) error {
	if err := s.admin.createGraph(ctx, graphName); err != nil {
		return err
	}
	if err := s.admin.apply(ctx, graphName, graph.Program); err != nil {
		return err
	}
	err := s.admin.load(ctx, graphName, "label", func(w *bufio.Writer) error {
		fmt.Fprintln(w, "node,name")
		for i := range g.HotHeads() {
			fmt.Fprintf(w, "%d,hot\n", g.Head(i))
		}
		return nil // w keeps its first error
	})
	if err != nil {
		return err
	}
	return s.admin.load(ctx, graphName, "edge", func(w *bufio.Writer) error {
		fmt.Fprintln(w, "src,dst")
		var line []byte
		for src, dst := range g.All(loadSeed) {
			line = strconv.AppendInt(line[:0], int64(src), 10)
			line = strconv.AppendInt(append(line, ','), int64(dst), 10)
			if _, err := w.Write(append(line, '\n')); err != nil {
				return err
			}
		}
		return nil
	})
}
