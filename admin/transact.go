package admin

import (
	"crypto/sha256"
	"hash"
	"io"
	"net/http"
	"strconv"
)

const (
	idempotencyKeyBytesMax = 255
	// programChangesMax is how often a request is decoded again because a new
	// program came between its check and its commit.
	programChangesMax = 3
)

// The limits' names in messages, as the server's configuration spells them.
const (
	limitBody = "body_bytes"
	limitLoad = "load_bytes"
)

// transactionBody documents the JSON form of a transaction; decodeTransaction reads it.
type transactionBody struct {
	Insert  map[string][][]any `json:"insert,omitempty" doc:"Rows to insert, by relation"`
	Delete  map[string][][]any `json:"delete,omitempty" doc:"Rows to delete, by relation"`
	Program string             `json:"program,omitempty" doc:"Or facts as text"`
}

func (a *API) transact(w http.ResponseWriter, r *http.Request) error {
	graph := pathValue(r, "graph")
	src, err := readBody(w, r, a.limits.BodyBytes, limitBody)
	if err != nil {
		return err
	}
	shape, err := shapeOf(r, src)
	if err != nil {
		return err
	}
	tx := Transaction{Caller: callerAdmin}
	if tx.IdempotencyKey, err = idempotencyKey(r); err != nil {
		return err
	}
	if tx.IdempotencyKey != "" {
		h := requestHash(r)
		_, _ = io.WriteString(h, src)
		h.Sum(tx.RequestHash[:0])
	}
	var receipt Receipt
	for attempt := 1; ; attempt++ {
		if err = a.decode(graph, src, shape, &tx); err != nil {
			return err
		}
		receipt, err = a.service.Transact(r.Context(), graph, tx)
		if !programChanged(err) || attempt == programChangesMax {
			break
		}
	}
	if err != nil {
		return graphError(graph, err)
	}
	writeReceipt(w, receipt)
	return nil
}

// decode fills tx.Program and tx.Ops by the program that is in force now.
func (a *API) decode(graph, src string, shape bodyShape, tx *Transaction) error {
	program, err := a.service.Schema(graph)
	if err != nil {
		return graphError(graph, err)
	}
	tx.Program = program
	text := src
	if shape == shapeJSON {
		if tx.Ops, text, err = decodeTransaction(program, src); err != nil || text == "" {
			return err
		}
	}
	tx.Ops, err = parseTransaction(program, text)
	return err
}

// writeReceipt sends a receipt without reflection; the route is hot.
func writeReceipt(w http.ResponseWriter, receipt Receipt) {
	body := make([]byte, 0, 96)
	body = append(body, `{"revision":`...)
	body = strconv.AppendUint(body, receipt.Revision, 10)
	body = append(body, `,"inserted":`...)
	body = strconv.AppendInt(body, int64(receipt.Inserted), 10)
	body = append(body, `,"deleted":`...)
	body = strconv.AppendInt(body, int64(receipt.Deleted), 10)
	body = append(body, `,"replayed":`...)
	body = strconv.AppendBool(body, receipt.Replayed)
	body = append(body, "}\n"...)
	writeBody(w, http.StatusOK, "application/json", body)
}

// idempotencyKey returns the request's Idempotency-Key, "" if it has none.
func idempotencyKey(r *http.Request) (string, error) {
	values := r.Header["Idempotency-Key"]
	if len(values) == 0 {
		return "", nil
	}
	if len(values) > 1 || values[0] == "" || len(values[0]) > idempotencyKeyBytesMax {
		p := newProblem(http.StatusBadRequest, "idempotency_key",
			"the header Idempotency-Key must be one value of 1 to %d bytes", idempotencyKeyBytesMax)
		detail := Detail{Message: p.Detail, Location: "header Idempotency-Key"}
		return "", p.withErrors([]Detail{detail}, 1)
	}
	return values[0], nil
}

// requestHash begins the hash that tells whether a repeated Idempotency-Key
// repeats the same request: where it goes, how it is to be read, then the body.
func requestHash(r *http.Request) hash.Hash {
	h := sha256.New()
	for _, part := range []string{
		r.URL.Path, r.URL.RawQuery, r.Header.Get("Content-Type"), r.Header.Get("Content-Encoding"),
	} {
		_, _ = io.WriteString(h, part)
		_, _ = h.Write([]byte{0})
	}
	return h
}
