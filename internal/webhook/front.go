package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"
	"unicode"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// outcome is what came of an admission.
type outcome string

// The outcomes.
const (
	unchanged outcome = "unchanged" // nothing that is decided here changes with the write
	observed  outcome = "observed"  // mode observe
	paused    outcome = "paused"    // all writes are stopped
	waiting   outcome = "waiting"   // a required object or key is missing
	settled   outcome = "settled"   // it was looked at, and needs nothing, or nothing but what the controller does
	recorded  outcome = "recorded"  // the record was written, with nothing on the template
	stamped   outcome = "stamped"   // the template was stamped
	kept      outcome = "kept"      // the writer had dropped what Tidemark left; it was put back
	stripped  outcome = "stripped"  // what was left on another object was taken away from its copy
	rewritten outcome = "rewritten" // a pod reads its snapshots
	failed    outcome = "failed"    // nothing could be decided; the write went through as it was
)

// answer is what is decided about a write.
type answer struct {
	outcome outcome
	// patch is what is added to the write; none when nothing is.
	patch []operation
	// remarks are shown to the writer.
	remarks []string
}

// front answers the API server for one webhook. It never denies: what cannot be decided goes through as it is, with a warning
// for the writer, and the controller sees to it afterwards.
type front struct {
	name  string
	asked func()
	// decide decides about a write within the deadline of its context.
	decide  func(context.Context, admission.Request) (answer, error)
	timeout time.Duration
	clock   clock.Clock
	log     logr.Logger
	metrics *Metrics
}

// Handle implements admission.Handler.
func (f *front) Handle(ctx context.Context, req admission.Request) admission.Response {
	began := f.clock.Now()
	f.asked()
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	a, err := f.try(ctx, req)
	if err != nil {
		a = answer{outcome: failed, remarks: []string{err.Error()}}
		f.log.Info("Could not decide; the write goes through as it is", "webhook", f.name, "kind", req.Kind.Kind,
			"namespace", req.Namespace, "name", req.Name, "why", err.Error())
	}
	response, err := a.response()
	if err != nil { // only what JSON cannot say
		f.log.Error(err, "Could not answer", "webhook", f.name)
		response, a.outcome = allow(), failed
	}
	f.metrics.admitted(f.name, a.outcome, f.clock.Since(began))
	return response
}

// try decides, and makes a panic an error: answered by the server of the webhook it would deny the write.
func (f *front) try(ctx context.Context, req admission.Request) (a answer, err error) {
	defer func() {
		if r := recover(); r != nil {
			f.log.Error(fmt.Errorf("panic: %v", r), "Could not decide", "webhook", f.name, "stack", string(debug.Stack()))
			err = fmt.Errorf("a fault of Tidemark: %v", r)
		}
	}()
	return f.decide(ctx, req)
}

// maxRemark is how long a warning may be, in bytes: the API server cuts longer ones.
const maxRemark = 250

func (a answer) response() (admission.Response, error) {
	r := allow()
	for _, text := range a.remarks {
		r.Warnings = append(r.Warnings, warning(text))
	}
	if len(a.patch) == 0 {
		return r, nil
	}
	body, err := json.Marshal(a.patch)
	if err != nil {
		return r, fmt.Errorf("encode patch: %w", err)
	}
	kind := admissionv1.PatchTypeJSONPatch
	r.Patch, r.PatchType = body, &kind
	return r, nil
}

// warning makes a text one that the API server passes on: it drops a warning with a line break or another control character, which
// joined errors have.
func warning(text string) string {
	text = strings.Join(strings.FieldsFunc("tidemark: "+text, unicode.IsControl), "; ")
	return strings.ToValidUTF8(text[:min(len(text), maxRemark)], "")
}

func allow() admission.Response {
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{
		Allowed: true, Result: &metav1.Status{Code: http.StatusOK},
	}}
}
