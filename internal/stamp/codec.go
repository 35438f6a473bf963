package stamp

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"

	v1 "tidemark.dev/tidemark/api/v1"
)

// format is the version of the record's format that this package writes.
const format = 1

// Errors of [Parse].
var (
	// ErrNewer: a newer Tidemark wrote the record, so this one must leave the workload alone.
	ErrNewer = errors.New("a newer Tidemark wrote it, so nothing is done for this workload: upgrade this Tidemark")
	// ErrGarbage: the annotation holds no record.
	ErrGarbage = errors.New("it is no record: remove it with the label " + v1.LabelRecordSum +
		", which makes Tidemark account for the workload anew, without a rollout")
)

// Encode writes a record as the value of its annotation, with the checksum that goes into the label beside it. Equal
// records have equal texts.
func Encode(r Record) (annotation, sum string) {
	r.Version = format
	text, err := json.Marshal(r)
	if err != nil {
		panic(fmt.Sprintf("encode record: %v", err)) // only a clock beyond the year 9999 gets here
	}
	return string(text), checksum(string(text))
}

// Parse reads a record from its annotation and says whether the checksum is the record's own. An empty annotation is no
// record and no error. An error names the annotation and says what to do; nothing may be decided on the workload then.
func Parse(annotation, sum string) (r *Record, intact bool, err error) {
	if annotation == "" {
		return nil, false, nil
	}
	// The version first: the rest of a newer format need not even have the same types.
	var head struct {
		Version int `json:"v"`
	}
	if json.Unmarshal([]byte(annotation), &head) != nil || head.Version < 1 {
		return nil, false, fmt.Errorf("parse record: annotation %s: %w", v1.AnnotationRecord, ErrGarbage)
	}
	if head.Version > format {
		return nil, false, fmt.Errorf("parse record: annotation %s has format %d: %w", v1.AnnotationRecord, head.Version, ErrNewer)
	}
	r = &Record{}
	if json.Unmarshal([]byte(annotation), r) != nil {
		return nil, false, fmt.Errorf("parse record: annotation %s: %w", v1.AnnotationRecord, ErrGarbage)
	}
	return r, sum == checksum(annotation), nil
}

var labelSafe = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// checksum gives 55 characters that may stand in a label.
func checksum(text string) string {
	h := sha256.Sum256([]byte(text))
	return "v1-" + labelSafe.EncodeToString(h[:])
}
