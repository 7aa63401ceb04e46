package door

import "net/http"

// recorder remembers what was answered, and calls before with the status before the
// caller learns of it.
type recorder struct {
	http.ResponseWriter
	status  int
	bytes   int64
	unheard bool // a part of the answer did not reach the caller
	before  func(status int)
}

func (r *recorder) begin(status int) {
	if r.status == 0 {
		r.status = status
		r.before(status)
	}
}

// WriteHeader notes the status and passes it on.
func (r *recorder) WriteHeader(status int) {
	r.begin(status)
	r.ResponseWriter.WriteHeader(status)
}

// Write counts the bytes and passes them on.
func (r *recorder) Write(b []byte) (int, error) {
	r.begin(http.StatusOK)
	n, err := r.ResponseWriter.Write(b)
	r.bytes, r.unheard = r.bytes+int64(n), r.unheard || err != nil
	return n, err
}

// Unwrap lets http.ResponseController flush and set deadlines.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
