package views

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
	"strconv"
	"strings"
)

// answerBytesMax bounds what is read of one answer.
const answerBytesMax = 64 << 20

// rest calls the server's admin listener, for one goroutine.
type rest struct {
	base   string // "http://host:port"
	key    string
	client *http.Client
}

// call sends one request and decodes the JSON answer into out unless it is nil.
func (r *rest) call(
	ctx context.Context, method, path, contentType string, body io.Reader, out any,
) error {
	text, err := r.raw(ctx, method, path, contentType, body)
	if err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("%s %s: answer %.100q: %w", method, path, text, err)
	}
	return nil
}

func (r *rest) raw(
	ctx context.Context, method, path, contentType string, body io.Reader,
) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, r.base+path, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+r.key)
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := r.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, answerBytesMax))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if response.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s %s: %s: %s",
			method, path, response.Status, bytes.TrimSpace(text))
	}
	return text, nil
}

func (r *rest) createGraph(ctx context.Context, name string) error {
	body, err := json.Marshal(map[string]string{"name": name})
	if err != nil {
		return err
	}
	return r.call(ctx, http.MethodPost, "/v1/graphs", "application/json",
		bytes.NewReader(body), nil)
}

func (r *rest) apply(ctx context.Context, graph, program string) error {
	return r.call(ctx, http.MethodPut, "/v1/graphs/"+graph+"/program", "text/plain",
		strings.NewReader(program), nil)
}

// load sends a table as CSV while rows writes it.
func (r *rest) load(
	ctx context.Context, graph, relation string, rows func(w *bufio.Writer) error,
) error {
	read, write := io.Pipe()
	go func() {
		w := bufio.NewWriterSize(write, 64<<10)
		write.CloseWithError(errors.Join(rows(w), w.Flush()))
	}()
	err := r.call(ctx, http.MethodPost, "/v1/graphs/"+graph+"/relations/"+relation+"/rows",
		"text/csv", read, nil)
	_ = read.Close() // lets the writer end if the server answered early
	return err
}

// transact sends one transaction in JSON and returns its revision.
func (r *rest) transact(ctx context.Context, graph string, body []byte) (uint64, error) {
	var receipt struct {
		Revision uint64 `json:"revision"`
	}
	err := r.call(ctx, http.MethodPost, "/v1/graphs/"+graph+"/transactions", "application/json",
		bytes.NewReader(body), &receipt)
	return receipt.Revision, err
}

// links returns the rows of one key by a fresh query that no viewer's state
// has a part in.
func (r *rest) links(ctx context.Context, graph string, head int) ([][2]int, error) {
	body := fmt.Appendf(nil, `{"query":"?r1(%d, Y)"}`, head)
	var answer struct {
		Rows [][2]int `json:"rows"`
	}
	err := r.call(ctx, http.MethodPost, "/v1/graphs/"+graph+"/query", "application/json",
		bytes.NewReader(body), &answer)
	return answer.Rows, err
}

// metrics returns the server's metrics by name; values that differ in labels
// alone are added.
func (r *rest) metrics(ctx context.Context) (map[string]float64, error) {
	text, err := r.raw(ctx, http.MethodGet, "/metrics", "", nil)
	if err != nil {
		return nil, err
	}
	return parseMetrics(string(text))
}

// parseMetrics reads the text form of Prometheus.
func parseMetrics(text string) (map[string]float64, error) {
	m := map[string]float64{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		end := strings.IndexAny(line, "{ ")
		if end < 0 {
			return nil, fmt.Errorf("metric without a value: %q", line)
		}
		rest := line[end:]
		if rest[0] == '{' {
			// A label's value may hold any byte, but no brace of ours.
			rest = rest[strings.LastIndexByte(rest, '}')+1:]
		}
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			return nil, fmt.Errorf("metric without a value: %q", line)
		}
		v, err := strconv.ParseFloat(fields[0], 64)
		if err != nil {
			return nil, fmt.Errorf("metric %q: %w", line, err)
		}
		m[line[:end]] += v
	}
	return m, nil
}

// certificateHash fetches what a viewer pins, from the data listener.
func certificateHash(ctx context.Context, address string) (hash [32]byte, err error) {
	data := &rest{base: "http://" + address, client: http.DefaultClient}
	text, err := data.raw(ctx, http.MethodGet, "/certificate.sha256", "", nil)
	if err != nil {
		return hash, err
	}
	decoded, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(decoded) != len(hash) {
		return hash, fmt.Errorf("certificate hash %.80q is not SHA-256 in hex", text)
	}
	return [32]byte(decoded), nil
}
