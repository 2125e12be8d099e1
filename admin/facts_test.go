package admin_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/heddle-live/heddle/admin"
	"github.com/heddle-live/heddle/engine/analysis"
)

func TestServiceErrors(t *testing.T) {
	tests := []struct {
		err    error
		status int
		code   string
		retry  string
	}{
		{fmt.Errorf("writers are too fast: %w", admin.ErrBusy), 429, "busy", "1"},
		{admin.ErrClosing, 503, "closing", "2"},
		{fmt.Errorf("append: %w", admin.ErrUnknownOutcome), 503, "outcome_unknown", "2"},
		{admin.ErrTooLarge, 413, "too_large", ""},
		{admin.ErrReadOnly, 507, "read_only", ""},
		{admin.ErrFull, 507, "full", ""},
		{admin.ErrDeadline, 504, "deadline", ""},
		{admin.ErrTooExpensive, 422, "query_too_expensive", ""},
		{admin.ErrIdempotencyMismatch, 422, "idempotency_mismatch", ""},
		{admin.ErrProgramChanged, 409, "program_changed", ""},
		{errors.New("disk /secret/path is on fire"), 500, "internal", ""},
	}
	for _, tt := range tests {
		t.Run(tt.code, func(t *testing.T) {
			f := newFixture(t)
			for range 3 {
				f.service.FailOnce = append(f.service.FailOnce, tt.err)
			}
			w := do(f.admin, request("POST", "/v1/graphs/shop/transactions", `{"insert":{"edge":[[1,2]]}}`))
			p := problem(t, w)
			if p.Status != tt.status || p.Code != tt.code || w.Header().Get("Retry-After") != tt.retry {
				t.Errorf("%+v, Retry-After %q", p, w.Header().Get("Retry-After"))
			}
			if secret := strings.Contains(p.Text(), "secret"); secret || tt.status == 500 && p.Request == "" {
				t.Errorf("%+v", p)
			}
		})
	}
}

// A new program between check and commit is no fault of the client.
func TestTransactDecodesAgain(t *testing.T) {
	f := newFixture(t)
	f.service.FailOnce = []error{admin.ErrProgramChanged, admin.ErrProgramChanged}
	w := do(f.admin, request("POST", "/v1/graphs/shop/transactions", `{"insert":{"edge":[[1,2]]}}`))
	if w.Code != 200 || len(f.service.Transactions) != 1 {
		t.Errorf("status %d, %d transactions\n%s", w.Code, len(f.service.Transactions), w.Body)
	}
}

func TestIdempotencyKey(t *testing.T) {
	f := newFixture(t)
	send := func(path, body string) *httptest.ResponseRecorder {
		return do(f.admin, request("POST", path, body, "Idempotency-Key: k1"))
	}
	const path, rows = "/v1/graphs/shop/transactions", "/v1/graphs/shop/relations/edge/rows"
	first := send(path, `{"insert":{"edge":[[1,2]]}}`)
	again := send(path, `{"insert":{"edge":[[1,2]]}}`)
	if first.Code != 200 || again.Code != 200 || len(f.service.Transactions) != 1 ||
		!strings.Contains(again.Body.String(), `"revision":1,"inserted":1,"deleted":0,"replayed":true`) {
		t.Errorf("first %s, again %s", first.Body, again.Body)
	}
	if p := problem(t, send(path, `{"insert":{"edge":[[1,3]]}}`)); p.Status != 422 {
		t.Errorf("another body: %+v", p)
	}
	if p := problem(t, send(rows, "src,dst\n1,2\n")); p.Status != 422 {
		t.Errorf("another route: %+v", p)
	}
	f.service.Put("other", testProgram())
	for i, body := range []string{"src,dst\n1,2\n", "src,dst\n1,2\n", "src,dst\n1,3\n"} {
		w := send("/v1/graphs/other/relations/edge/rows", body)
		if want := []int{200, 200, 422}[i]; w.Code != want {
			t.Errorf("load %d: status %d, want %d\n%s", i, w.Code, want, w.Body)
		}
	}
}

func TestLoadGzip(t *testing.T) {
	pack := func(text string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = io.WriteString(z, text)
		_ = z.Close()
		return b.String()
	}
	f := newFixture(t)
	const path = "/v1/graphs/shop/relations/edge/rows"
	for _, header := range []string{"Content-Encoding: gzip", "Content-Type: application/gzip", ""} {
		w := do(f.admin, request("POST", path, pack("\ufeffdst,src\n1,2\n"), header))
		if w.Code != 200 {
			t.Errorf("%q: status %d\n%s", header, w.Code, w.Body)
		}
	}
	if got := f.service.Facts("shop"); len(got) != 1 || got[0] != "edge(2, 1)" {
		t.Errorf("facts %v", got)
	}
	bomb := pack("src,dst\n" + strings.Repeat(" ", 1<<20) + "\n")
	if p := problem(t, do(f.admin, request("POST", path, bomb))); p.Status != 413 {
		t.Errorf("unpacked beyond the limit: %+v", p)
	}
	short := pack("src,dst\n1,2\n")
	short = short[:len(short)-4]
	if p := problem(t, do(f.admin, request("POST", path, short))); p.Status != 400 {
		t.Errorf("cut off: %+v", p)
	}
}

func TestBodyOfUnknownLength(t *testing.T) {
	f := newFixture(t)
	for body, want := range map[string]int{
		`{"insert":{"edge":[[1,2]]}}`: 200,
		strings.Repeat(" ", 5000):     413,
	} {
		r := request("POST", "/v1/graphs/shop/transactions", body)
		r.ContentLength = -1
		if w := do(f.admin, r); w.Code != want {
			t.Errorf("status %d, want %d\n%s", w.Code, want, w.Body)
		}
	}
}

func TestReadyNamesTheFailingPart(t *testing.T) {
	f := newFixture(t)
	f.service.Parts = []admin.PartProblem{{Part: "journal", Reason: "no answer for 2 s"}}
	p := problem(t, do(f.admin, request("GET", "/readyz", "", "Authorization: ")))
	if p.Status != 503 || !strings.Contains(p.Detail, "journal") || p.Errors[0].Part != "journal" ||
		p.Errors[0].Message != "no answer for 2 s" {
		t.Errorf("%+v", p)
	}
}

func TestPanicIsAnAnswer(t *testing.T) {
	f := newFixture(t)
	f.service.Compile = func(string) (*analysis.Program, error) { panic("a bug") }
	p := problem(t, do(f.admin, request("PUT", "/v1/graphs/shop/program", "x")))
	if p.Status != 500 || p.Request == "" || strings.Contains(p.Text(), "a bug") {
		t.Errorf("%+v", p)
	}
}

func BenchmarkTransact(b *testing.B) {
	f := newFixture(b)
	const body = `{"insert":{"edge":[[123456,7890123]]}}`
	b.ReportAllocs()
	for b.Loop() {
		f.service.Transactions = f.service.Transactions[:0]
		w := do(f.admin, request("POST", "/v1/graphs/shop/transactions", body, jsonType))
		if w.Code != 200 {
			b.Fatal(w.Body)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tx/s")
}
