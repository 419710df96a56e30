package loss

// Hold returns the row with what formulas stop the gradient at held at these log-probs, whatever New is.
func (r Row) Hold(at []float64) Row {
	r.held = at
	return r
}
