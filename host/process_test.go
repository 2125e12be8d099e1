package host_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-live/heddle/host"
	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/lite"
	"github.com/heddle-live/heddle/protocol/qmux"
	"github.com/heddle-live/heddle/protocol/quic"
)

// serveVariable makes this test binary a server: it runs the commands of the
// real one with its arguments. The name is no setting's, so that the server
// does not take it for a misspelt one.
const serveVariable = "TEST_SERVE_HEDDLE"

// processPatience is how long a process may take to start or to stop, on a
// machine that does much else.
const processPatience = 60 * time.Second

func TestMain(m *testing.M) {
	if os.Getenv(serveVariable) != "" {
		os.Exit(runCommands())
	}
	os.Exit(m.Run())
}

// runCommands does what main does. It ends when standard input ends, so that no
// server outlives the test that started it.
func runCommands() int {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	root := &cobra.Command{Use: "heddle", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(host.Commands()...)
	root.SetArgs(os.Args[1:])
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "heddle:", err)
		return 1
	}
	return 0
}

// process is a server in a process of its own, which can be killed.
type process struct {
	t       *testing.T
	cmd     *exec.Cmd
	stdin   io.Closer
	stderr  bytes.Buffer  // to be read once ended is closed
	printed chan []byte   // its first line; closed if it ends before
	ended   chan struct{} // closed when it is gone and err is set
	err     error

	data, admin string // addresses, once await has returned
	http        *http.Client
}

// spawn starts a server on a data directory and does not wait for it.
func spawn(t *testing.T, dir string, flags ...string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{
		"serve", "--data-dir", dir, "--data-listen", "127.0.0.1:0",
		"--admin-listen", "127.0.0.1:0", "--log-level", "warn",
	}, flags...)
	p := &process{
		t: t, cmd: exec.CommandContext(t.Context(), self, args...),
		printed: make(chan []byte, 1), ended: make(chan struct{}),
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
	}
	p.cmd.Env = append(os.Environ(), serveVariable+"=1", "HEDDLE_ADMIN_KEY="+testKey)
	p.cmd.Stderr = &p.stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.follow(stdout)
	t.Cleanup(p.kill)
	return p
}

func (p *process) follow(stdout io.Reader) {
	lines := bufio.NewReader(stdout)
	if line, err := lines.ReadBytes('\n'); err == nil {
		p.printed <- line
	}
	close(p.printed)
	_, _ = io.Copy(io.Discard, lines)
	p.err = p.cmd.Wait()
	close(p.ended)
}

// await waits until the server serves.
func (p *process) await() {
	p.t.Helper()
	var line []byte
	select {
	case line = <-p.printed:
	case <-time.After(processPatience):
	}
	var ready struct{ Data, Admin string }
	if err := json.Unmarshal(line, &ready); err != nil {
		p.kill()
		p.t.Fatalf("the server printed %q instead of its addresses (%v) and ended with %v:\n%s",
			line, err, p.err, p.stderr.String())
	}
	p.data, p.admin = ready.Data, ready.Admin
}

// kill sends SIGKILL, unless the process is gone, and waits for its end.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.ended
	_ = p.stdin.Close()
	p.http.CloseIdleConnections()
}

// stop interrupts the server as Ctrl-C does and expects a clean end.
func (p *process) stop() {
	p.t.Helper()
	p.http.CloseIdleConnections()
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		p.t.Errorf("interrupt the server: %v", err)
	}
	select {
	case <-p.ended:
	case <-time.After(processPatience):
		p.t.Errorf("the server did not stop within %v", processPatience)
	}
	p.kill()
	if p.err != nil {
		p.t.Errorf("the server ended with %v:\n%s", p.err, p.stderr.String())
	}
}

// call is one request to the admin listener.
type call struct {
	method, path string
	media        string // of the body
	key          string // Idempotency-Key, "" for none
	body         string
}

// send returns the answer, or an error if none came whole: the outcome of a
// write is unknown then.
func (p *process) send(ctx context.Context, c call) (status int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, c.method, "http://"+p.admin+c.path,
		strings.NewReader(c.body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+testKey)
	req.Header.Set("Content-Type", c.media)
	if c.key != "" {
		req.Header.Set("Idempotency-Key", c.key)
	}
	res, err := p.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	body, err = io.ReadAll(res.Body)
	return res.StatusCode, body, err
}

// must sends a request that has to succeed and decodes its answer.
func (p *process) must(answer any, c call) {
	p.t.Helper()
	status, body, err := p.send(p.t.Context(), c)
	if err == nil && status/100 == 2 {
		err = json.Unmarshal(body, answer)
	}
	if err != nil || status/100 != 2 {
		p.t.Fatalf("%s %s: %d %.300s: %v", c.method, c.path, status, body, err)
	}
}

// receipt is the answer to a write.
type receipt struct {
	Revision uint64
	Inserted int
	Deleted  int
	Replayed bool
}

// query asks graph g something and returns the rows.
func (p *process) query(text string, parameters map[string]any) [][]any {
	p.t.Helper()
	body, err := json.Marshal(map[string]any{"query": text, "parameters": parameters})
	if err != nil {
		p.t.Fatal(err)
	}
	var answer struct {
		Rows      [][]any
		Truncated bool
	}
	p.must(&answer, call{
		method: "POST", path: "/v1/graphs/g/query", media: "application/json", body: string(body),
	})
	if answer.Truncated {
		p.t.Fatalf("the answer to %s is truncated at %d rows", text, len(answer.Rows))
	}
	return answer.Rows
}

// dial opens a client session over the named transport and returns it with the
// function that ends it.
func (p *process) dial(transport string) (*lite.Session, func()) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), processPatience)
	defer cancel()
	var session protocol.Session
	var err error
	switch transport {
	case "quic":
		pin := p.certificate(ctx)
		session, err = quic.Dial(ctx, p.data,
			quic.DialConfig{CertificateSHA256: &pin, Protocols: lite.VersionNames()})
	case "websocket":
		session, err = qmux.Dial(ctx, "ws://"+p.data+"/", qmux.Config{Protocols: lite.VersionNames()})
	default:
		err = errors.New("unknown transport")
	}
	if err != nil {
		p.t.Fatalf("dial %s: %v", transport, err)
	}
	client := lite.NewSession(session, lite.Config{Client: true})
	var running sync.WaitGroup
	runCtx, stop := context.WithCancel(context.Background())
	running.Go(func() { _ = client.Run(runCtx) })
	end := sync.OnceFunc(func() { stop(); running.Wait() })
	p.t.Cleanup(end)
	return client, end
}

// certificate asks the server for the hash that clients pin.
func (p *process) certificate(ctx context.Context) (pin [32]byte) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(ctx, "GET", "http://"+p.data+"/certificate.sha256", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	res, err := p.http.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if n, decodeErr := hex.Decode(pin[:], text); err != nil || decodeErr != nil || n != len(pin) {
		p.t.Fatalf("certificate hash %q: %v, %v", text, err, decodeErr)
	}
	return pin
}

// metric reads a metric without labels.
func (p *process) metric(name string) float64 {
	p.t.Helper()
	_, body, err := p.send(p.t.Context(), call{method: "GET", path: "/metrics"})
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(body)) {
		if text, ok := strings.CutPrefix(line, name+" "); ok {
			value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil {
				p.t.Fatal(err)
			}
			return value
		}
	}
	p.t.Fatalf("no metric %s", name)
	return 0
}

// until waits until a metric has a value.
func (p *process) until(name string, want float64) {
	p.t.Helper()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for deadline := time.Now().Add(processPatience); ; <-look.C {
		got := p.metric(name)
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s is %v after %v, want %v", name, got, processPatience, want)
		}
	}
}

// memory tells the process's resident memory, where the system does.
func (p *process) memory() string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return "resident memory unknown"
	}
	var now, peak int
	for line := range strings.Lines(string(text)) {
		_, _ = fmt.Sscanf(line, "VmRSS: %d kB", &now)
		_, _ = fmt.Sscanf(line, "VmHWM: %d kB", &peak)
	}
	return fmt.Sprintf("%d MiB resident, %d at most", now>>10, peak>>10)
}
