package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// keepPath is where a package file is sent to.
const keepPath = "/v1/environments"

// statuses are the HTTP status codes of the codes of refusals.
var statuses = map[string]int{
	"bad_request": http.StatusBadRequest, "not_found": http.StatusNotFound, "conflict": http.StatusConflict,
	"too_large": http.StatusRequestEntityTooLarge, "full": http.StatusInsufficientStorage, "busy": http.StatusServiceUnavailable,
	"timeout": http.StatusGatewayTimeout,
}

func (s *Server) environments(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := s.longer(w, r)
	defer cancel()
	query := r.URL.Query()
	found, err := s.node.Environments(ctx, query.Get("cid"), query.Has("everywhere"))
	if err != nil {
		s.fail(w, "the environments could not be listed", err)
		return
	}
	s.answer(w, http.StatusOK, list(found))
}

// keepEnvironment takes one package at a time.
func (s *Server) keepEnvironment(w http.ResponseWriter, r *http.Request) {
	select {
	case s.keeping <- struct{}{}:
		defer func() { <-s.keeping }()
	default:
		s.refuse(w, http.StatusServiceUnavailable, "busy", "another package is being kept; try again")
		return
	}
	ctx, cancel := s.longer(w, r)
	defer cancel()
	file, err := io.ReadAll(r.Body)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		s.fail(w, "", &Error{Code: "too_large", Message: fmt.Sprintf("the package has more than %d MiB", MaxPackageBytes>>20)})
		return
	case err != nil:
		s.refuse(w, http.StatusBadRequest, "bad_request", "the package did not arrive whole")
		return
	}
	kept, err := s.node.KeepEnvironment(ctx, file)
	if err != nil {
		s.fail(w, "the package could not be kept", err)
		return
	}
	s.answer(w, http.StatusOK, kept)
}

func (s *Server) dropEnvironment(w http.ResponseWriter, r *http.Request) {
	if err := s.node.DropEnvironment(r.PathValue("cid")); err != nil {
		s.fail(w, "the package could not be dropped", err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// longer gives a request more time than others have.
func (s *Server) longer(w http.ResponseWriter, r *http.Request) (context.Context, context.CancelFunc) {
	connection := http.NewResponseController(w)
	end := time.Now().Add(environmentTimeout)
	if err := errors.Join(connection.SetReadDeadline(end), connection.SetWriteDeadline(end.Add(writeTimeout))); err != nil {
		s.log.Debug("the local API could not set a deadline", "error", err)
	}
	return context.WithDeadline(r.Context(), end)
}

// fail answers with a refusal of the node's, or says that the cause is in the log.
func (s *Server) fail(w http.ResponseWriter, what string, err error) {
	var refusal *Error
	if errors.As(err, &refusal) && statuses[refusal.Code] != 0 {
		s.answer(w, statuses[refusal.Code], refusal)
		return
	}
	s.log.Error("local API: "+what, "error", err)
	s.refuse(w, http.StatusInternalServerError, "internal", what+"; see the node's log")
}
