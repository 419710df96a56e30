package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// The types of errors, in OpenAI's words.
const (
	invalidRequest = "invalid_request_error"
	serverError    = "server_error"
	rateLimited    = "rate_limit_error"
	unauthorized   = "authentication_error"
)

// invalid is the answer to a request that makes no sense; param names the field at fault, if one is.
func invalid(param, format string, args ...any) *apiError {
	return &apiError{Status: http.StatusBadRequest, Type: invalidRequest, Param: param, Message: fmt.Sprintf(format, args...)}
}

// unsupported is the answer to a request for something that this endpoint cannot do.
func unsupported(param, format string, args ...any) *apiError {
	e := invalid(param, format, args...)
	e.Code = "unsupported"
	return e
}

// errorBody is an error in the form of all of OpenAI's APIs.
func errorBody(e *apiError) []byte {
	type detail struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	}
	optional := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	return mustJSON(struct {
		Error detail `json:"error"`
	}{detail{e.Message, e.Type, optional(e.Param), optional(e.Code)}})
}

// mustJSON encodes a value of this package, all of which can be.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("gateway: encode %T: %v", v, err))
	}
	return b
}
