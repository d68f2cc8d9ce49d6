"""What a training step costs on a card that is not here: time, memory, energy, in closed form.

Takes the operators of a traced step and the datasheet of a card; imports no framework. The coefficients are
data, ``coefficients.json``, made by ``bench/calibrate.py``; ``docs/method.md`` says how and how far off it
is.
"""
