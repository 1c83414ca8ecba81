"""The program of the process that tokenizes very long texts, for all kinds of models."""

from msx_llm.classification.inputs import PairFiles
from msx_llm.embedding.inputs import InputFiles
from msx_llm.text.prompts import PromptFiles
from msx_llm.text.text_answers import serve

if __name__ == "__main__":
    serve(PromptFiles | InputFiles | PairFiles)
