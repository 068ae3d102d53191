"""Run real models once and write down what they did. Imports torch; nothing below does."""
