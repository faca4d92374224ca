# The two commands of README's first screen; the work is in the scripts.
.PHONY: demo test clean

demo:
	@demo/run.sh

test:
	@tests/support/run_all.sh

clean:
	rm -rf build build-asan build-tsan build-fuzz
