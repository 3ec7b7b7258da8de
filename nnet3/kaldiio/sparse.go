package kaldiio

// SparseElement is an element of a sparse row.
type SparseElement struct {
	Index int32
	Value float32
}

// SparseMatrix holds the elements of each row that are not zero, by ascending index.
type SparseMatrix struct {
	Cols int
	Rows [][]SparseElement
}

// SparseMatrix reads a sparse matrix.
func (r *Reader) SparseMatrix() (m SparseMatrix, err error) {
	var rows int
	if r.binary {
		if err = r.Expect("SM"); err != nil {
			return m, err
		}
		rows, err = r.dimension("the number of rows of a sparse matrix")
	} else {
		rows, err = r.assignment("rows=")
	}
	if err != nil {
		return m, err
	}
	m.Cols = -1
	elements := 0
	for range rows {
		row, cols, err := r.sparseRow()
		if err != nil {
			return m, err
		}
		if m.Cols >= 0 && cols != m.Cols {
			return m, r.Errorf("row %d of a sparse matrix has %d columns, the rows before it have %d", len(m.Rows), cols, m.Cols)
		}
		m.Cols = cols
		m.Rows = append(m.Rows, row)
		if elements += 1 + len(row); elements > maxElements {
			return m, r.mayHave(elements)
		}
	}
	m.Cols = max(m.Cols, 0)
	return m, nil
}

// assignment reads a word in text that is a name with a number, such as dim=40.
func (r *Reader) assignment(name string) (int, error) {
	w, err := r.word(name, nil)
	if err != nil {
		return 0, err
	}
	if len(w) < len(name) || string(w[:len(name)]) != name {
		return 0, r.Errorf("expected %s and a number, got %s", name, quote(w))
	}
	r.pos += len(name)
	if r.fill(1) && isSpace(r.buf[r.pos]) {
		return 0, r.Errorf("expected a number after %s", name)
	}
	return r.dimension(name)
}

// sparseRow reads a row and its number of columns.
func (r *Reader) sparseRow() (row []SparseElement, cols int, err error) {
	if r.binary {
		if err = r.Expect("SV"); err != nil {
			return nil, 0, err
		}
		if cols, err = r.dimension("the dimension of a sparse vector"); err != nil {
			return nil, 0, err
		}
		n, err := r.dimension("the number of elements of a sparse vector")
		if err != nil {
			return nil, 0, err
		}
		row = make([]SparseElement, 0, min(n, firstChunk/64))
		for range n {
			if row, err = r.sparseElement(row, cols); err != nil {
				return nil, 0, err
			}
		}
		return row, cols, nil
	}
	if cols, err = r.assignment("dim="); err != nil {
		return nil, 0, err
	}
	const what = "a sparse vector"
	if err = r.open(what); err != nil {
		return nil, 0, err
	}
	for {
		if done, err := r.closes(what); done || err != nil {
			return row, cols, err
		}
		if row, err = r.sparseElement(row, cols); err != nil {
			return nil, 0, err
		}
	}
}

// sparseElement reads an index and a value.
func (r *Reader) sparseElement(row []SparseElement, cols int) ([]SparseElement, error) {
	i, err := r.Int32()
	if err != nil {
		return nil, err
	}
	if i < 0 || int(i) >= cols || len(row) > 0 && i <= row[len(row)-1].Index {
		return nil, r.Errorf("index %d of a sparse vector of dimension %d is out of range or out of order", i, cols)
	}
	v, err := r.Float32()
	if err == nil {
		err = r.mayHave(len(row) + 1)
	}
	return append(row, SparseElement{i, v}), err
}

// SparseMatrix writes a sparse matrix.
func (w *Writer) SparseMatrix(m SparseMatrix) {
	if w.binary {
		w.Token("SM")
		w.Int(len(m.Rows))
	} else {
		w.Raw("rows=")
		w.Int(len(m.Rows))
	}
	for _, row := range m.Rows {
		if w.binary {
			w.Token("SV")
			w.Int(m.Cols)
			w.Int(len(row))
		} else {
			w.Raw("dim=")
			w.Int(m.Cols)
			w.Raw("[ ")
		}
		for _, e := range row {
			w.Int32(e.Index)
			w.Float32(e.Value)
		}
		if !w.binary {
			w.Raw("] ")
		}
	}
	w.Newline()
}
