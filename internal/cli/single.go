package cli

import "errors"

// single is a flag that is given once or not at all, and has something then. Of two the last would count without a word; and an empty
// one, such as a variable that a pipeline does not set, would be as none.
type single struct{ value *string }

var (
	errTwice = errors.New("it may be given once")
	errEmpty = errors.New("it is empty")
)

// Set takes the value.
func (s single) Set(value string) error {
	switch {
	case value == "":
		return errEmpty
	case *s.value != "":
		return errTwice
	}
	*s.value = value
	return nil
}

// String gives the value.
func (s single) String() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// Type is what the help says that it is.
func (single) Type() string { return "string" }
