package host_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

const taskProgram = `+task(id: int)
+claim(task: int, user: string)
view mine($user: string) := ?claim(T, $user)
view board($from: int) := free: ?task(T), T >= $from, !claim(T, _), taken: ?claim(T, U), T >= $from
action claim($user: string, $task: int) := +claim($task, $user) <- task($task), !claim($task, _)
action divide($by: int) := +task(X) <- task(T), X = T / $by
seed +task[(1), (2)]
`

// onData calls a route of the data listener without a key.
func (s *server) onData(method, path string) (int, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method,
		"http://"+s.running.DataAddr()+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.do(req)
}

// TestActions has many claim one task at once: one wins, and viewers see it.
func TestActions(t *testing.T) {
	s := startServer(t)
	s.apply(taskProgram)
	client := s.dial("quic")
	mine := s.watch(client, "g/mine/u~2f3", "rows")
	mine.until("[]")
	board := s.watch(client, "g/board/0", "rows")
	if c, err := board.next(); err != nil || len(c.Units) != 2 ||
		fmt.Sprint(board.state.UnitRows("free")) != "[[1] [2]]" {
		t.Errorf("board: %+v, %v", c, err)
	}
	var mu sync.Mutex
	var won []int
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			status, body := s.onData("POST", fmt.Sprintf("/v1/graphs/g/actions/claim/u~2f%d/1", i))
			if status != 200 || !strings.Contains(body, `"statements":[{"rows":`) {
				t.Errorf("%d %s", status, body)
			}
			if strings.Contains(body, `"inserted":1,"deleted":0,"replayed"`) {
				mu.Lock()
				won = append(won, i)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(won) != 1 {
		t.Fatalf("%d have claimed the task", len(won))
	}
	for len(board.state.UnitRows("taken")) == 0 {
		if _, err := board.next(); err != nil {
			t.Fatal(err)
		}
	}
	if got := fmt.Sprint(board.state.UnitRows("free"), board.state.UnitRows("taken")); got !=
		fmt.Sprintf("[[2]] [[1 u/%d]]", won[0]) {
		t.Errorf("board: %s", got)
	}
	if status, body := s.onData("POST", "/v1/graphs/g/actions/claim/u~2f3/2"); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	for len(mine.state.Rows()) == 0 || fmt.Sprint(mine.state.Rows()[len(mine.state.Rows())-1]) !=
		"[2 u/3]" {
		if _, err := mine.next(); err != nil {
			t.Fatal(err)
		}
	}
	status, body := s.onData("POST", "/v1/graphs/g/actions/divide/0")
	if status != 422 || !strings.Contains(body, `"code":"row_errors"`) ||
		!strings.Contains(body, "1 / 0") {
		t.Errorf("%d %s", status, body)
	}
	status, body = s.call("POST", "/v1/graphs/g/transactions?expect_revision=1", "text/plain",
		"-claim(T, U) <- claim(T, U)")
	if status != 409 || !strings.Contains(body, "precondition_failed") {
		t.Errorf("%d %s", status, body)
	}
	status, body = s.call("POST", "/v1/graphs/g/transactions?expect_revision=18", "text/plain",
		"-claim(T, U) <- claim(T, U)")
	if status != 200 || !strings.Contains(body, `"statements":[{"rows":2,"inserted":0,"deleted":2}]`) {
		t.Errorf("%d %s", status, body)
	}
	status, body = s.call("GET", "/v1/graphs/g/errors", "", "")
	if status != 200 || !strings.Contains(body, `"errors":[]`) {
		t.Errorf("%d %s", status, body)
	}
}
