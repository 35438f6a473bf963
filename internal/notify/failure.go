package notify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"
)

// Cause is what kept a message from its destination, from a fixed set.
type Cause string

// The causes.
const (
	CauseCredential Cause = "credential" // an entry of the Secret is missing or unusable
	CauseTimeout    Cause = "timeout"    // no answer in time
	CauseConnection Cause = "connection" // no connection: refused, reset, no route
	CauseName       Cause = "name"       // the host's name is not found
	CauseTLS        Cause = "tls"        // the certificate is not trusted, or no TLS is spoken
	CauseRedirect   Cause = "redirect"   // the receiver sends elsewhere, where a credential must not follow
	CauseLimited    Cause = "limited"    // the receiver asks for fewer messages
	CauseRefused    Cause = "refused"    // the receiver does not want the message: 4xx, or a word of its own
	CauseReceiver   Cause = "receiver"   // the receiver has failed: 5xx
	CauseStopped    Cause = "stopped"    // this process ends
	CauseOther      Cause = "other"
)

// DeliveryError is why a message was not delivered. It is made of this package's own words only: an error of net/http holds the URL, which
// for Slack is the credential itself, and an answer may repeat what was sent. Neither is ever kept.
type DeliveryError struct {
	Cause Cause
	// Status is the HTTP status, 0 when there was no answer.
	Status int
	// Detail says more, in this package's words.
	Detail string
	// After is how long the receiver asks to wait; 0 when it does not say.
	After time.Duration
	// Perhaps says that the receiver may have taken the message all the same: the whole of it was sent, and no answer says no.
	Perhaps bool
}

// Error implements error.
func (f *DeliveryError) Error() string {
	text := string(f.Cause)
	if f.Status != 0 {
		text += fmt.Sprintf(": status %d", f.Status)
	}
	if f.Detail != "" {
		text += ": " + f.Detail
	}
	return text
}

// failed sorts an error of the transport into a cause and drops it.
func failed(err error) *DeliveryError {
	var name *net.DNSError
	var network net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return &DeliveryError{Cause: CauseStopped}
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return &DeliveryError{Cause: CauseTimeout, Detail: "no answer in time: is the receiver reachable from this pod?"}
	case errors.As(err, &name):
		return &DeliveryError{Cause: CauseName, Detail: "the host of its URL is not found: mend the URL, or the cluster's DNS"}
	case untrusted(err):
		return &DeliveryError{Cause: CauseTLS, Detail: "its certificate is not trusted, or it speaks no TLS: mend the URL, or mount its authority"}
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return &DeliveryError{Cause: CauseConnection, Detail: "no connection: is the receiver up, and does a NetworkPolicy let this pod out?"}
	}
	return &DeliveryError{Cause: CauseOther, Detail: "the request could not be sent or its answer not be read"}
}

func untrusted(err error) bool {
	var verification *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var record tls.RecordHeaderError
	return errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &hostname) || errors.As(err, &record)
}

// answered sorts an answer into a failure; nil for one that says yes.
func answered(status int, after time.Duration) *DeliveryError {
	f := &DeliveryError{Status: status, After: after}
	switch {
	case status >= 200 && status < 300:
		return nil
	case status >= 300 && status < 400:
		f.Cause, f.Detail = CauseRedirect, "it sends elsewhere, and credentials do not follow: put the final address into the URL"
	case status == 429:
		f.Cause, f.Detail = CauseLimited, "it wants fewer messages"
	case status == 401 || status == 403:
		f.Cause, f.Detail = CauseRefused, "the credential is not accepted: renew it in the Secret"
	case status == 404 || status == 410:
		f.Cause, f.Detail = CauseRefused, "there is nothing at its URL any more: renew it"
	case status < 500:
		f.Cause, f.Detail = CauseRefused, "it does not accept the message"
	default:
		f.Cause, f.Detail = CauseReceiver, "it has failed"
	}
	return f
}
