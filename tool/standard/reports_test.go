package standard_test

import "github.com/nnopt/nnopt/nnet3/computation"

// What verbs print with --json, as far as tests look at it.
type (
	compileReport struct {
		Query     string             `json:"query"`
		Compiled  computation.Counts `json:"compiled"`
		Optimized computation.Counts `json:"optimized"`
	}
	runReport struct {
		Query              string  `json:"query"`
		Utterances         int     `json:"utterances"`
		Failed             int     `json:"failed"`
		Skipped            int     `json:"skipped"`
		Frames             int64   `json:"frames"`
		Rows               int64   `json:"rows"`
		LoadSeconds        float64 `json:"load_seconds"`
		FirstResultSeconds float64 `json:"first_result_seconds"`
		RunSeconds         float64 `json:"run_seconds"`
		ComputeSeconds     float64 `json:"compute_seconds"`
		BuildSeconds       float64 `json:"build_seconds"`
		Programs           int     `json:"programs"`
		WorkspaceBytes     int64   `json:"workspace_bytes"`
	}
	streamReport struct {
		Query           string  `json:"query"`
		Streams         int     `json:"streams"`
		AudioSeconds    float64 `json:"audio_seconds"`
		Rate            float64 `json:"rate"`
		Packet          int     `json:"packet"`
		FramesPerChunk  int     `json:"frames_per_chunk"`
		ChunkSeconds    float64 `json:"chunk_seconds"`
		Frames          int64   `json:"frames"`
		Rows            int64   `json:"rows"`
		RowsWanted      int64   `json:"rows_wanted"`
		ElapsedSeconds  float64 `json:"elapsed_seconds"`
		SecondsPerFrame float64 `json:"seconds_per_frame"`
		Latency         latency `json:"latency"`
		OwnLatency      latency `json:"own_latency"`
		StreamBytes     int     `json:"stream_bytes"`
		StateBytes      int     `json:"state_bytes"`
		Workers         int     `json:"workers"`
		Holds           bool    `json:"holds"`
		Threads         int     `json:"threads"`
	}
	latency struct {
		Median float64 `json:"median"`
		P99    float64 `json:"p99"`
		Max    float64 `json:"max"`
	}
	stepListing struct {
		Step   string `json:"step"`
		Graphs []any  `json:"graphs"`
	}
)
