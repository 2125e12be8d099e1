// Package floor measures the cost that no live view can avoid: a fact by HTTP
// POST, one synced batch in the store, one write to the stream of one of K
// connected viewers, and nothing else. It uses the libraries bare, so that what
// Heddle adds to them can be told. `bench floor` reports it alone; `bench views`
// runs one beside the server that it measures.
package floor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/heddle-live/heddle/bench/process"
)

// deltaTimeout bounds the wait for one write's delta.
const deltaTimeout = 20 * time.Second

// Floor is a running floor server with its viewers. Methods are for one
// goroutine.
type Floor struct {
	child     *process.Child
	directory string
	url       string
	viewers   []io.Closer
	arrived   chan arrival
	client    *http.Client
	written   int
}

// arrival says when which viewer read something.
type arrival struct {
	key int
	at  time.Time
	err error // the viewer's stream ended
}

// Options say what to start.
type Options struct {
	Command   []string // of the executable, that runs Serve; a directory follows
	Env       []string // additions for the server's process
	Directory string   // for the store, on the disk to be measured; "" is the temporary one
	Keys      int      // viewers connected, one for each key, 1 to 10,000
	Transport string   // "quic" or "webtransport"
}

// Start starts a floor server in its own process and connects its viewers. The
// caller ends both by Close. If ctx ends the server is killed.
func Start(ctx context.Context, o Options) (_ *Floor, err error) {
	f := &Floor{client: &http.Client{}, arrived: make(chan arrival, 2*o.Keys+16)}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	if f.directory, err = os.MkdirTemp(o.Directory, "heddle-floor-"); err != nil {
		return nil, err
	}
	f.child, err = process.StartSelf(ctx, o.Env, append(slices.Clone(o.Command), f.directory)...)
	if err != nil {
		return nil, err
	}
	var at ready
	if err := json.Unmarshal([]byte(f.child.Ready), &at); err != nil {
		return nil, fmt.Errorf("floor server's first line %q: %w", f.child.Ready, err)
	}
	f.url = "http://" + at.Write + "/write"
	for key := range o.Keys {
		v, err := dial(ctx, o.Transport, at.View, key, f.arrived)
		if err != nil {
			return nil, fmt.Errorf("viewer %d: %w", key, err)
		}
		f.viewers = append(f.viewers, v)
	}
	return f, nil
}

// Close ends the viewers and the server and removes its store.
func (f *Floor) Close() error {
	var errs []error
	for _, v := range f.viewers {
		errs = append(errs, v.Close())
	}
	if f.child != nil {
		errs = append(errs, f.child.Stop())
	}
	if f.directory != "" {
		errs = append(errs, os.RemoveAll(f.directory))
	}
	f.client.CloseIdleConnections()
	return errors.Join(errs...)
}

// CPU is the processor time of the server's process so far.
func (f *Floor) CPU() (time.Duration, error) { return f.child.CPU() }

// RSS is the resident memory of the server's process in bytes.
func (f *Floor) RSS() (int64, error) { return f.child.RSS() }

// Write sends one fact to the next viewer in turn and waits for its answer and
// its delta. Both times count from before the POST; the delta may come before
// the answer. A delta at another viewer is an error.
func (f *Floor) Write(ctx context.Context) (ack, delta time.Duration, err error) {
	key := f.written % len(f.viewers)
	body := fmt.Appendf(nil, `{"insert":{"edge":[[%d,%d]]}}`, key, 1000+f.written)
	f.written++
	ctx, cancel := context.WithTimeout(ctx, deltaTimeout)
	defer cancel()

	start := time.Now()
	if err := f.post(ctx, body); err != nil {
		return 0, 0, err
	}
	ack = time.Since(start)
	select {
	case a := <-f.arrived:
		switch {
		case a.err != nil:
			return 0, 0, fmt.Errorf("viewer %d: %w", a.key, a.err)
		case a.key != key:
			return 0, 0, fmt.Errorf("viewer %d got the delta of key %d", a.key, key)
		}
		return ack, a.at.Sub(start), nil
	case <-ctx.Done():
		return 0, 0, fmt.Errorf("delta of key %d: %w", key, ctx.Err())
	}
}

func (f *Floor) post(ctx context.Context, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := f.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("floor server: %s: %s", response.Status, bytes.TrimSpace(text))
	}
	return nil
}
